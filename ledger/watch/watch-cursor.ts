/** The watcher's cursor: the last block whose deposits, postings and events are all committed. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { NATIVE_ASSET, OPENING_CAPITAL, walletAccount } from "../journal/accounts.js";
import { postJournals } from "../journal/journal.js";
import { LedgerError } from "../errors.js";
import { storedHash, storedHeight, storedInteger } from "../stored-values.js";

/** Where the watcher stands. */
export interface WatchCursor {
  /** -1 before block 0 is booked. */
  readonly height: Height;
  /** Undefined exactly when the height is -1. */
  readonly blockHash: Hash32 | undefined;
  /** Index that the next registered address gets; all lower ones exist. */
  readonly nextAddressIndex: number;
  /** How often a person let the watcher go back on a chain that lost blocks. */
  readonly rewinds: number;
}

interface CursorRow {
  readonly height: string;
  readonly block_hash: string | null;
  readonly next_address_index: string;
  readonly rewinds: number;
}

const SELECT_CURSOR = `SELECT height, block_hash, next_address_index, rewinds
                         FROM watch_cursor`;

/** Reads the cursor without a lock. */
export async function readCursor(sql: Sql): Promise<WatchCursor> {
  return parseCursor(await sql.query<CursorRow>(SELECT_CURSOR));
}

/**
 * Reads and locks the cursor until the caller's transaction ends. Whoever registers addresses or
 * books blocks holds this lock, so the two never overlap.
 */
export async function lockCursor(tx: Sql): Promise<WatchCursor> {
  return parseCursor(await tx.query<CursorRow>(`${SELECT_CURSOR} FOR UPDATE`));
}

/**
 * Moves the cursor from one block to a later one: compare and set.
 * @throws CURSOR_MOVED when it does not stand where the caller thinks
 */
export async function advanceCursor(
  tx: Sql,
  step: { readonly from: WatchCursor; readonly height: Height; readonly blockHash: Hash32 },
): Promise<void> {
  const rows = await tx.query<{ moved: number }>(
    `WITH step AS (
       UPDATE watch_cursor SET height = $1, block_hash = $2
        WHERE height = $3 AND block_hash IS NOT DISTINCT FROM $4 AND height < $1
       RETURNING 1
     ) SELECT count(*)::integer AS moved FROM step`,
    [step.height, step.blockHash, step.from.height, step.from.blockHash ?? null],
  );
  if (rows[0]?.moved !== 1) throw cursorMoved(step.from.height);
}

/** Name of the row that tells from which block on a ledger watches. */
const WATCHED_FROM = "watched_from_height";

/**
 * Lets a ledger that has seen no block begin behind a block of a chain that exists: in one commit
 * the cursor stands there and each hot wallet's balance after that block is opening capital. A
 * ledger with a block, or with an address whose blocks would be skipped, stays as it is.
 * @returns whether it begins there now; "again" where a wallet was registered meanwhile, whose balance
 *   belongs to it
 */
export async function beginCursorBehind(
  database: SqlDatabase,
  block: {
    readonly height: Height;
    readonly hash: Hash32;
    readonly wallets: readonly { readonly address: Address; readonly balanceAtoken: Atoken }[];
  },
): Promise<boolean | "again"> {
  return database.transaction(async (tx) => {
    const from = await lockCursor(tx);
    if (from.height !== -1 || from.nextAddressIndex !== 0) return false;
    // Under the lock, which whoever registers a wallet holds, too.
    const others = await tx.query(`SELECT 1 FROM wallet WHERE address <> ALL ($1::text[])`, [
      block.wallets.map(({ address }) => address),
    ]);
    if (others.length > 0) return "again";
    await advanceCursor(tx, { from, height: block.height, blockHash: block.hash });
    const values = [WATCHED_FROM, String(block.height + 1)];
    await tx.query(`INSERT INTO meta (key, value) VALUES ($1, $2)`, values);
    const holding = block.wallets.filter(({ balanceAtoken }) => balanceAtoken > 0n);
    await postJournals(
      tx,
      holding.map(({ address, balanceAtoken: amountUnits }) => ({
        kind: "wallet.opening",
        idemKey: `wallet-opening:${address}`,
        effectiveHeight: block.height,
        memo: `balance after block ${block.height}`,
        postings: [
          {
            asset: NATIVE_ASSET,
            debit: walletAccount(address),
            credit: OPENING_CAPITAL,
            amountUnits,
          },
        ],
      })),
    );
    return true;
  });
}

/** First block that this ledger watches; 0 for one that began with the chain. */
export async function watchedFromHeight(sql: Sql): Promise<Height> {
  const rows = await sql.query<{ value: string }>(`SELECT value FROM meta WHERE key = $1`, [
    WATCHED_FROM,
  ]);
  const value = rows[0]?.value;
  return value === undefined ? 0 : storedHeight(value);
}

/** The error for a cursor that another process moved. */
export function cursorMoved(expectedHeight: Height): LedgerError {
  return new LedgerError("CURSOR_MOVED", "another watcher advanced the cursor", {
    details: { expectedHeight },
    retriable: true,
  });
}

function parseCursor(rows: readonly CursorRow[]): WatchCursor {
  const row = rows[0];
  if (row === undefined) throw new LedgerError("CORRUPT_ROW", "the cursor row is missing");
  return {
    height: storedHeight(row.height),
    blockHash: row.block_hash === null ? undefined : storedHash(row.block_hash),
    nextAddressIndex: storedInteger(row.next_address_index),
    rewinds: row.rewinds,
  };
}
