/** A second hot wallet of a desk, and what somebody pays by hand with a wallet's key. */
import type { Address } from "../../../chain/address.js";
import { bytesToHex, type Hash32 } from "../../../chain/hex.js";
import { signLegacy } from "../../../chain/transaction.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { type Desk, TOKEN } from "../recovery/desk.js";

/** Lays its keystore into the home, starts all anew, and gives it coins. */
export async function addWallet(
  desk: Desk,
  wallet: Address,
  amountAtoken = 5_000n * TOKEN,
): Promise<void> {
  desk.writeKeystore("wallets/second.json", wallet);
  await desk.restart();
  desk.pay([wallet, amountAtoken]);
  desk.chain.mine();
  await desk.watch();
}

/** Four coins, as much as the requests of these tests ask for; not mined yet. */
export function payByHand(desk: Desk, key: Uint8Array, nonce: bigint, to: Address): Hash32 {
  const intent = { chainId: FAKE_CHAIN_ID, nonce, gasPriceAtoken: 90_000_000n };
  const rest = { gasLimit: 21_000n, to, valueAtoken: 4n * TOKEN, data: new Uint8Array(0) };
  return desk.chain.submit(bytesToHex(signLegacy({ ...intent, ...rest }, key)));
}
