/** What our addresses held of a token before the ledger knew it: booked once, as sums. */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { DEPOSIT_ADDRESSES, OPENING_CAPITAL, SUSPENSE, walletAccount } from "../books/accounts.js";
import { type JournalEntry, postJournals } from "../books/journal.js";
import type { TokenAsset } from "./asset-registry.js";

/** So much of a token. */
export interface TokenBalance {
  readonly asset: string;
  /** Greater than zero. */
  readonly amountUnits: bigint;
}

/** A balance after the block before the first that counts. */
export interface OpeningBalance extends TokenBalance {
  readonly address: Address;
  readonly isHotWallet: boolean;
}

/** Kind of the entries about deposit addresses. */
export const TOKEN_OPENING = "deposit.token_opening";

/**
 * Books them in one transaction: the hot wallet's are the exchange's own, those of deposit addresses
 * go to suspense until a person says whose they are. A repeat does nothing.
 */
export function bookOpening(
  database: SqlDatabase,
  { symbol, fromHeight }: TokenAsset,
  balances: readonly OpeningBalance[],
): Promise<void> {
  return database.transaction(async (tx) => {
    const rows = await tx.query<{ opened: boolean }>(
      `SELECT opened FROM token_state WHERE asset = $1 FOR UPDATE`,
      [symbol],
    );
    if (rows[0]?.opened !== false) return;
    await tx.query(
      `UPDATE token_state SET opened = true, changed_by = 'watcher', changed_at = now()
        WHERE asset = $1`,
      [symbol],
    );
    await postJournals(
      tx,
      balances.map((balance) => openingEntry({ ...balance, fromHeight }, balance)),
    );
  });
}

/**
 * The entry of one address; the same for a token that is younger than the address and for an address
 * that is younger than the token.
 * @param suffix of the key, where a chain has lost the block
 */
export function openingEntry(
  owner: { readonly address: Address; readonly fromHeight: Height; readonly isHotWallet?: boolean },
  { asset, amountUnits }: TokenBalance,
  suffix = "",
): JournalEntry {
  const { address, fromHeight, isHotWallet = false } = owner;
  return {
    kind: isHotWallet ? "wallet.opening" : TOKEN_OPENING,
    idemKey: `token-opening:${asset}:${address}${suffix}`,
    effectiveHeight: fromHeight - 1,
    // The opening of a token is no transaction: only the address is named.
    memo: `before ${address}`,
    postings: [
      {
        asset,
        debit: isHotWallet ? walletAccount(address) : DEPOSIT_ADDRESSES,
        credit: isHotWallet ? OPENING_CAPITAL : SUSPENSE,
        amountUnits,
      },
    ],
  };
}
