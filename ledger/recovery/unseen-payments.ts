/**
 * What a wallet had sent before the ledger knew of it. A wallet that was used elsewhere looks the same as one
 * whose payments this ledger has lost: only a person can tell, and no request that one of them paid would
 * freeze.
 */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import { LedgerError } from "../errors.js";

/** Transactions of a wallet of whose nonces the ledger has none, below the first block that it looks at. */
export interface UnseenPayments {
  /** Greater than 0. */
  readonly count: bigint;
  /** The last block in which they can be. */
  readonly upTo: Height;
  /** Whether the whole ledger begins behind that block, and not this wallet alone. */
  readonly isBehindWatch: boolean;
}

/** A wallet with what is unseen of it, if anything. */
export interface SeenWallet {
  readonly wallet: { readonly address: Address };
  readonly unseen: UnseenPayments | undefined;
}

/** In words, with what a person does about it; undefined where nothing is unseen. */
export function unseenText({ wallet: { address }, unseen }: SeenWallet): string | undefined {
  if (unseen === undefined) return undefined;
  const { count, upTo, isBehindWatch } = unseen;
  const remedy = isBehindWatch
    ? 'begin an empty database with watcher.start-height = "genesis" in config/watcher.toml, or a height ' +
      "below the first of them, and recover that"
    : "put the database back once more, and start with the wallet's file in the home";
  return (
    `${count} transactions of the hot wallet ${address} up to block ${upTo} were mined before this ledger ` +
    `knew it; what they paid would be paid again: ${remedy}. If all of them were made elsewhere: causeway ` +
    `recover --apply --accept-unseen ${address}`
  );
}

/**
 * @param accepted wallets of which a person says that they were used elsewhere before
 * @throws RECOVERY
 */
export function refuseUnseen(wallets: readonly SeenWallet[], accepted: readonly Address[]): void {
  const others = wallets.filter(({ wallet }) => !accepted.includes(wallet.address));
  const text = others.map(unseenText).find((one) => one !== undefined);
  if (text !== undefined) throw new LedgerError("RECOVERY", text);
}
