/** Checks a file of reserves with nothing but the genesis: no network, no clock, no node. */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { recoverPersonalMessage } from "../../../chain/signing/personal-message.js";
import type { Atoken } from "../../../chain/units.js";
import { NATIVE_ASSET } from "../../../ledger/books/accounts.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { notProven, type ProvenBlock, provenAccount, verifyBlock } from "../balance/verify.js";
import { type ReservesFile, reservesText } from "./reserves-file.js";
import { liabilitiesRoot, type SumRoot } from "./sum-tree.js";

/** What a file proves. */
export interface ProvenReserves {
  readonly block: ProvenBlock;
  readonly accounts: number;
  readonly wallets: number;
  /** Sum of all accounts' coins. */
  readonly reservesAtoken: Atoken;
  /** What is owed in the chain's own coin. */
  readonly owedAtoken: Atoken;
  readonly isCovered: boolean;
  /** Of the other assets: their reserves are not in the chain's state in a form that proves them. */
  readonly otherLiabilities: readonly SumRoot[];
  readonly liabilitiesRoot: string;
  readonly nonce: string;
}

/**
 * Verifies block, accounts and signatures.
 * @throws NOT_PROVEN naming the step that does not hold
 */
export async function verifyReserves(
  file: ReservesFile,
  genesis: Genesis,
): Promise<ProvenReserves> {
  const block = verifyBlock(file, genesis);
  const seen = new Set<Address>();
  let reservesAtoken = 0n;
  for (const account of file.accounts) {
    // An account that is named twice would be counted twice.
    if (seen.has(account.address)) throw notProven(`${account.address} is named twice`);
    seen.add(account.address);
    reservesAtoken += (await provenAccount(account, block.stateRoot)).balanceAtoken;
  }
  const root = liabilitiesRoot(file.liabilities);
  const { chainId, height, nonce } = file;
  const text = reservesText({
    chainId,
    height,
    blockHash: block.blockHash,
    liabilities: root,
    nonce,
  });
  const wallets = file.accounts.filter(({ role }) => role === "hot-wallet");
  for (const { address } of wallets) {
    const found = file.signatures.find((signature) => signature.address === address)?.signature;
    if (found === undefined || recoverPersonalMessage(text, found) !== address) {
      throw notProven(`${toChecksumAddress(address)} did not sign for this block and these roots`);
    }
  }
  const native = file.liabilities.find(({ asset }) => asset === NATIVE_ASSET);
  const owedAtoken = native?.sumUnits ?? 0n;
  return {
    block,
    accounts: file.accounts.length,
    wallets: wallets.length,
    reservesAtoken,
    owedAtoken,
    isCovered: reservesAtoken >= owedAtoken,
    otherLiabilities: file.liabilities.filter(({ asset }) => asset !== NATIVE_ASSET),
    liabilitiesRoot: root,
    nonce,
  };
}
