/** The watcher's cursor: the last block whose deposits, postings and events are all committed. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { OPENING_CAPITAL, walletAccount } from "../journal/accounts.js";
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

/** SQL: first block that this ledger watches; 0 for one that began with the chain. */
export const FIRST_WATCHED = `
  coalesce((SELECT value::bigint FROM meta WHERE key = '${WATCHED_FROM}'), 0)`;

/** What a hot wallet has of an asset. */
export interface WalletHolding {
  readonly wallet: Address;
  readonly asset: string;
  /** In the asset's smallest unit. */
  readonly units: bigint;
}

/**
 * Lets a ledger that has seen no block begin behind a block of a chain that exists: in one commit
 * the cursor stands there and what each hot wallet has after that block is opening capital. A
 * ledger with a block, with an address whose blocks would be skipped, or with payments that a recovery has
 * booked, stays as it is.
 * @param block.holdings of every wallet, of coins and of every token that the ledger knows by now
 * @returns whether it begins there now; "again" where a wallet or a token was registered meanwhile, whose
 *   holdings belong to it
 */
export async function beginCursorBehind(
  database: SqlDatabase,
  block: {
    readonly height: Height;
    readonly hash: Hash32;
    readonly holdings: readonly WalletHolding[];
  },
): Promise<boolean | "again"> {
  const { height, hash: blockHash, holdings } = block;
  return database.transaction(async (tx) => {
    const from = await lockCursor(tx);
    if (from.height !== -1 || from.nextAddressIndex !== 0) return false;
    // What a wallet holds here is without what it had paid by then, and that is booked already.
    const recovered = await tx.query(`SELECT 1 FROM recovered_payment LIMIT 1`);
    if (recovered.length > 0) return false;
    // Under the lock, which whoever registers a wallet or a token holds, too.
    const others = await tx.query(
      `SELECT 1 FROM wallet w CROSS JOIN asset a
        WHERE NOT EXISTS (SELECT 1 FROM unnest($1::text[], $2::text[]) AS held (wallet, asset)
                           WHERE held.wallet = w.address AND held.asset = a.symbol)`,
      [holdings.map(({ wallet }) => wallet), holdings.map(({ asset }) => asset)],
    );
    if (others.length > 0) return "again";
    await advanceCursor(tx, { from, height, blockHash });
    const values = [WATCHED_FROM, String(height + 1)];
    await tx.query(`INSERT INTO meta (key, value) VALUES ($1, $2)`, values);
    const held = holdings.filter(({ units }) => units > 0n);
    const wallets = [...new Set(held.map(({ wallet }) => wallet))];
    await postJournals(
      tx,
      wallets.map((wallet) => ({
        kind: "wallet.opening",
        idemKey: `wallet-opening:${wallet}`,
        effectiveHeight: height,
        memo: `balance after block ${height}`,
        postings: held
          .filter((one) => one.wallet === wallet)
          .map(({ asset, units: amountUnits }) => {
            return { asset, debit: walletAccount(wallet), credit: OPENING_CAPITAL, amountUnits };
          }),
      })),
    );
    return true;
  });
}

/** See `FIRST_WATCHED`. */
export async function watchedFromHeight(sql: Sql): Promise<Height> {
  const [row] = await sql.query<{ height: string }>(`SELECT (${FIRST_WATCHED})::text AS height`);
  return storedHeight(row?.height);
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
