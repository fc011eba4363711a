/** What our addresses held of a token before the ledger knew it: booked once, as sums. */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { WATCHED_FROM, WITH_LOSSES } from "../deposits/deposit-addresses.js";
import { lockCursor, readCursor } from "../watch/watch-cursor.js";
import {
  DEPOSIT_ADDRESSES,
  OPENING_CAPITAL,
  SUSPENSE,
  walletAccount,
} from "../journal/accounts.js";
import { lossSuffix, lossSuffixOf } from "../journal/entry-keys.js";
import { type JournalEntry, postJournals } from "../journal/journal.js";
import { IS_NOT_REVERSED } from "../journal/reversals.js";
import { storedAddress, storedHeight, storedInteger } from "../stored-values.js";
import { noteFound } from "./sweep-due.js";
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
 * @param read.rewinds losses of blocks that the watcher had gone back for when they were read: each
 *   moves the token's first block
 * @param read.bookedPasts `countBookedPasts` before they were read
 * @returns false when the chain lost blocks since, or what a wallet held was booked without the token
 */
export function bookOpening(
  database: SqlDatabase,
  { symbol, fromHeight }: TokenAsset,
  read: {
    readonly balances: readonly OpeningBalance[];
    readonly rewinds: number;
    readonly bookedPasts: number;
  },
): Promise<boolean> {
  const { balances, rewinds, bookedPasts } = read;
  return database.transaction(async (tx) => {
    if ((await lockCursor(tx)).rewinds !== rewinds) return false;
    if ((await countBookedPasts(tx)) !== bookedPasts) return false;
    const rows = await tx.query<{ opened: boolean }>(
      `SELECT opened FROM token_state WHERE asset = $1 FOR UPDATE`,
      [symbol],
    );
    if (rows[0]?.opened !== false) return true;
    await tx.query(
      `UPDATE token_state SET opened = true, changed_by = 'watcher', changed_at = now()
        WHERE asset = $1`,
      [symbol],
    );
    const unbooked = await withoutOpened(tx, balances, rewinds);
    await postJournals(
      tx,
      unbooked.map((balance) => openingEntry({ ...balance, fromHeight }, balance, rewinds)),
    );
    const swept = balances.filter(({ isHotWallet }) => !isHotWallet);
    await noteFound(
      tx,
      swept.map((balance) => ({ ...balance, height: fromHeight - 1 })),
    );
    return true;
  });
}

/**
 * Those of the balances that no entry of before a loss of blocks has, unless that undid it: a token and an
 * address of the same first block are both opened with what the other holds by then.
 * @param rewinds as of `openingEntry`, whose key tells of an entry since the last loss by itself
 */
export async function withoutOpened<Balance extends Pick<OpeningBalance, "asset" | "address">>(
  sql: Sql,
  balances: readonly Balance[],
  rewinds: number,
): Promise<readonly Balance[]> {
  if (rewinds === 0 || balances.length === 0) return balances;
  const rows = await sql.query<{ place: string }>(
    `SELECT place
       FROM unnest($1::text[]) AS place
      CROSS JOIN generate_series(0, $2::integer - 1) AS former (rewinds)
       JOIN journal_entry e
         ON e.idem_key = place || ${lossSuffixOf("former.rewinds")}
      WHERE ${IS_NOT_REVERSED}`,
    [balances.map(openingPlace), rewinds],
  );
  const opened = new Set(rows.map(({ place }) => place));
  return balances.filter((balance) => !opened.has(openingPlace(balance)));
}

/** The key of an opening, but for the losses of blocks before it. */
function openingPlace({ asset, address }: Pick<OpeningBalance, "asset" | "address">): string {
  return `token-opening:${asset}:${address}`;
}

/**
 * Deposit addresses whose past is not booked as a whole, and of this token is: they were opened with it, for
 * both have the same first block.
 */
export async function openedWith(
  sql: Sql,
  { asset, fromHeight }: { readonly asset: string; readonly fromHeight: Height },
): Promise<ReadonlySet<Address>> {
  const rows = await sql.query<{ address: string }>(
    `SELECT d.address
       FROM deposit_address d
       JOIN journal_entry entry ON split_part(entry.memo, ' ', 2) = d.address
       JOIN posting ON posting.journal_id = entry.id
      WHERE NOT d.backfilled AND entry.kind = '${TOKEN_OPENING}' AND posting.asset = $1
        AND entry.effective_height = $2`,
    [asset, fromHeight - 1],
  );
  return new Set(rows.map(({ address }) => storedAddress(address)));
}

/** What a deposit address held of a token before it counted there. */
export interface TokenPast {
  /** First block whose movements of the token at the address are booked one by one. */
  readonly fromHeight: Height;
  /**
   * booked: it is in the books, as one sum. awaited: nobody has looked yet. none: nothing is booked, because
   * nothing was held then, or the contract did not tell, or by code alone that nobody had accepted.
   */
  readonly state: "booked" | "awaited" | "none";
}

/** See `TokenPast`; undefined of an address that is no deposit address. */
export async function readTokenPast(
  sql: Sql,
  { symbol: asset, fromHeight: tokenFrom }: Pick<TokenAsset, "symbol" | "fromHeight">,
  address: Address,
): Promise<TokenPast | undefined> {
  const [row] = await sql.query<{ from: string; backfilled: boolean; opened: boolean }>(
    `${WITH_LOSSES}
     SELECT (${WATCHED_FROM})::text AS from, d.backfilled, t.opened
       FROM deposit_address d JOIN token_state t ON t.asset = $2 WHERE d.address = $1`,
    [address, asset],
  );
  if (row === undefined) return undefined;
  const addressFrom = storedHeight(row.from);
  const { rewinds } = await readCursor(sql);
  // Openings that were booked since the last loss of blocks count as well.
  const unbooked = await withoutOpened(sql, [{ asset, address }], rewinds + 1);
  // Whichever is younger is opened with the other; of the same block, either of them.
  const isAwaited =
    (addressFrom >= tokenFrom && !row.backfilled) || (addressFrom <= tokenFrom && !row.opened);
  const fromHeight = Math.max(addressFrom, tokenFrom);
  if (unbooked.length === 0) return { fromHeight, state: "booked" };
  return { fromHeight, state: isAwaited ? "awaited" : "none" };
}

/** Hot wallets whose past is booked: with a token of the same block only where that was opened before. */
export async function countBookedPasts(sql: Sql): Promise<number> {
  const rows = await sql.query<{ count: string }>(
    `SELECT count(*)::text AS count FROM wallet WHERE past_booked`,
  );
  return storedInteger(rows[0]?.count);
}

/**
 * The entry of one address; the same for a token that is younger than the address and for an address
 * that is younger than the token.
 * @param rewinds how often the chain came back without blocks: what a loss has undone is booked anew
 */
export function openingEntry(
  owner: { readonly address: Address; readonly fromHeight: Height; readonly isHotWallet?: boolean },
  { asset, amountUnits }: TokenBalance,
  rewinds: number,
): JournalEntry {
  const { address, fromHeight, isHotWallet = false } = owner;
  return {
    kind: isHotWallet ? "wallet.opening" : TOKEN_OPENING,
    idemKey: `${openingPlace({ asset, address })}${lossSuffix(rewinds)}`,
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
