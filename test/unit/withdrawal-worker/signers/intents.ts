/** Intents for tests of signers, and the key that signs them, known to ethers too. */
import { Wallet } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { hexToBytes } from "../../../../chain/hex.js";
import type { SigningIntent } from "../../../../withdrawal-worker/signers/signer-port.js";

/** The wallet of these tests. */
export const WALLET = new Wallet(`0x${"4c".repeat(32)}`);

/** Its private key. */
export const KEY = hexToBytes(WALLET.privateKey);

/** Its address. */
export const ADDRESS = parseAddress(WALLET.address);

/** Limits that the intents keep. */
export const LIMITS = {
  gasPriceCapAtoken: 1_000_000_000n,
  gasLimitMax: 100_000n,
  feePerPayoutAtoken: 10n ** 17n,
};

/** A destination. */
export const PAYEE = parseAddress("0x52908400098527886e0f7030069857d2e4169ee7");

/** A payment on a nonce. */
export function paymentOn(nonce: bigint, amountUnits = 250_000_000_000_000_000n): SigningIntent {
  return {
    kind: "payment",
    chainId: 6940n,
    nonce,
    to: PAYEE,
    valueAtoken: amountUnits,
    data: new Uint8Array(0),
    gasLimit: 25_200n,
    gasPriceAtoken: 25_000_000n,
    withdrawalId: `wd_${nonce}`,
    customerId: "alice",
    asset: "TOKEN",
    amountUnits,
    destination: PAYEE,
    approvals: [],
  };
}

/** The transfer of nothing that takes a nonce. */
export function cancelOn(nonce: bigint): SigningIntent {
  return { ...paymentOn(nonce), kind: "cancel", to: ADDRESS, valueAtoken: 0n };
}

/** What ethers signs for an intent. */
export function signedByEthers(intent: SigningIntent): Promise<string> {
  return WALLET.signTransaction({
    type: 0,
    chainId: intent.chainId,
    nonce: Number(intent.nonce),
    to: intent.to,
    value: intent.valueAtoken,
    gasLimit: intent.gasLimit,
    gasPrice: intent.gasPriceAtoken,
  });
}
