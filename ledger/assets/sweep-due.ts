/**
 * Where to look for coins to sweep: a list that what comes to addresses fills and looking empties. It is no
 * truth: how much there is the chain says.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { isPausedSql } from "./token-state.js";
import { lockCursor } from "../watch/watch-cursor.js";
import { storedAddress, storedAtoken, storedInteger } from "../stored-values.js";

/** What of an address is to be looked at. */
export interface DueSweep {
  readonly address: Address;
  /** Index of the address' key. */
  readonly index: number;
  readonly asset: string;
  /** The token's contract; undefined for coins. */
  readonly contract: Address | undefined;
  /** The token is paused: its code changed. */
  readonly isPaused: boolean;
  /**
   * Within a day, addresses whose sweep of this asset was mined and did not bring it, or how often this
   * one's did not, whichever is more: what a token does to one holder says nothing of the others.
   */
  readonly failures: number;
  /** All lower nonces of the address are known to be used. */
  readonly nextNonce: bigint;
}

/**
 * What is to be looked at now, in the order of its time; nothing of addresses that are under way, and
 * nothing that has a deposit above the block that is looked at: it is not seen there yet.
 * @param seen.height the block whose state the caller looks at
 */
export async function readDue(
  sql: Sql,
  { height, limit }: { readonly height: Height; readonly limit: number },
): Promise<DueSweep[]> {
  const rows = await sql.query<{
    address: string;
    index: string;
    asset: string;
    contract: string | null;
    paused: boolean;
    failures: string;
    next_nonce: string;
  }>(
    `SELECT due.address, d.index::text, due.asset, a.contract,
            ${isPausedSql("due.asset")} AS paused,
            (SELECT greatest(count(DISTINCT s.address),
                             count(*) FILTER (WHERE s.address = due.address))
               FROM sweep s WHERE s.asset = due.asset AND s.state = 'failed'
                AND s.changed_at > now() - interval '1 day')::text AS failures,
            coalesce((SELECT max(nonce) + 1 FROM sweep s WHERE s.address = due.address), 0)::text
              AS next_nonce
       FROM sweep_due due
       JOIN deposit_address d ON d.address = due.address
       JOIN asset a ON a.symbol = due.asset
      WHERE due.due_at <= now() AND due.height <= $2
        AND NOT EXISTS (SELECT 1 FROM sweep s WHERE s.address = due.address
          AND s.state IN ('needs-gas', 'ready', 'signed', 'sent', 'frozen'))
      -- Tokens first: the coins of an address are their gas.
      ORDER BY due.due_at, due.address, a.contract NULLS LAST, due.asset LIMIT $1`,
    [limit, height],
  );
  return rows.map((row) => ({
    address: storedAddress(row.address),
    index: storedInteger(row.index),
    asset: row.asset,
    contract: row.contract === null ? undefined : storedAddress(row.contract),
    isPaused: row.paused,
    failures: storedInteger(row.failures),
    nextNonce: storedAtoken(row.next_nonce),
  }));
}

/** The state of the chain that was looked at. */
export interface LookedAt {
  /** The block after which it was looked at. */
  readonly height: Height;
  /** Losses of blocks that the watcher had gone back for before. */
  readonly rewinds: number;
}

/**
 * Looks again later; 0 for what has nothing: a deposit puts it back. What got a deposit since it was
 * looked at stays due, and everything where the chain lost blocks since: what was there is gone.
 */
export async function putOff(
  database: SqlDatabase,
  entries: readonly (Pick<DueSweep, "address" | "asset"> & { readonly delayMs: number })[],
  looked: LookedAt,
): Promise<void> {
  if (entries.length === 0) return;
  await database.transaction(async (tx) => {
    if ((await lockCursor(tx)).rewinds === looked.rewinds) await store(tx, entries, looked.height);
  });
}

async function store(
  tx: Sql,
  entries: readonly (Pick<DueSweep, "address" | "asset"> & { readonly delayMs: number })[],
  height: Height,
): Promise<void> {
  await tx.query(
    // In the watcher's order, which marks the same rows: else each may hold what the other wants.
    `WITH input AS (
       SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS input (address, asset, delay)
     ), present AS (
       SELECT due.address, due.asset, input.delay
         FROM sweep_due due JOIN input ON due.address = input.address AND due.asset = input.asset
        WHERE due.due_at <= now() AND due.height <= $4
        ORDER BY due.address, due.asset FOR UPDATE OF due)
     UPDATE sweep_due due SET due_at = CASE WHEN present.delay = 0 THEN 'infinity'::timestamptz
            ELSE now() + present.delay * interval '1 millisecond' END
       FROM present WHERE due.address = present.address AND due.asset = present.asset`,
    [
      entries.map(({ address }) => address),
      entries.map(({ asset }) => asset),
      entries.map(({ delayMs }) => delayMs),
      height,
    ],
  );
}

/** Takes off the list what a sweep was just begun for, unless a deposit above the block came since. */
export async function takeOff(
  tx: Sql,
  begun: readonly Pick<DueSweep, "address" | "asset">[],
  height: Height,
): Promise<void> {
  await tx.query(
    `WITH present AS (
       SELECT due.address, due.asset
         FROM sweep_due due
         JOIN unnest($1::text[], $2::text[]) AS begun (address, asset)
           ON due.address = begun.address AND due.asset = begun.asset
        WHERE due.height <= $3 ORDER BY due.address, due.asset FOR UPDATE OF due)
     UPDATE sweep_due due SET due_at = 'infinity'
       FROM present WHERE due.address = present.address AND due.asset = present.asset`,
    [begun.map(({ address }) => address), begun.map(({ asset }) => asset), height],
  );
}

/**
 * Makes due what no deposit tells of: what addresses held before they, or its token, counted, and what came
 * of a token unsaid.
 * @param found.height a block in which it is there
 */
export async function noteFound(
  tx: Sql,
  found: readonly (Pick<DueSweep, "address" | "asset"> & { readonly height: Height })[],
): Promise<void> {
  if (found.length === 0) return;
  await tx.query(
    `INSERT INTO sweep_due (address, asset, height)
     SELECT address, asset, max(height)
       FROM unnest($1::text[], $2::text[], $3::bigint[]) AS found (address, asset, height)
      GROUP BY address, asset ORDER BY address, asset
     ON CONFLICT (address, asset) DO UPDATE
        SET due_at = least(sweep_due.due_at, excluded.due_at),
            height = greatest(sweep_due.height, excluded.height)`,
    [
      found.map(({ address }) => address),
      found.map(({ asset }) => asset),
      found.map(({ height }) => height),
    ],
  );
}

/** Rows of the list that one statement changes: deposits are noted between them. */
const SOONER_AT_ONCE = 5_000;

/**
 * Makes due now what waits of these assets for longer than an hour: it does for rules that have changed. What
 * waits for a token, a node or a price is looked at within the hour by itself.
 */
export async function lookSooner(sql: Sql, assets: readonly string[]): Promise<void> {
  if (assets.length === 0) return;
  for (;;) {
    const rows = await sql.query(
      `WITH waiting AS (
         SELECT address, asset FROM sweep_due
          WHERE asset = ANY ($1::text[]) AND due_at < 'infinity'
            AND due_at > now() + interval '1 hour'
          -- In the order of who marks the same rows, as above.
          ORDER BY address, asset LIMIT $2 FOR UPDATE)
       UPDATE sweep_due due SET due_at = now()
         FROM waiting WHERE due.address = waiting.address AND due.asset = waiting.asset
       RETURNING 1`,
      [assets, SOONER_AT_ONCE],
    );
    if (rows.length < SOONER_AT_ONCE) return;
  }
}

/** Makes what sweeps were about due again. */
export async function lookAgain(sql: Sql, ids: readonly number[], delayMs: number): Promise<void> {
  await sql.query(
    `INSERT INTO sweep_due (address, asset, due_at)
     SELECT DISTINCT address, asset, now() + $2::bigint * interval '1 millisecond' FROM sweep
      WHERE id = ANY ($1::bigint[]) ORDER BY address, asset
     ON CONFLICT (address, asset) DO UPDATE
        SET due_at = least(sweep_due.due_at, excluded.due_at)`,
    [ids, delayMs],
  );
}

/**
 * The chain came back without the blocks above `height`: deposits of theirs are not waited for, and
 * what their sweeps had moved is looked at again. A sweep that was made again says where it was mined
 * first: its transaction tells that it was above.
 * @param height below zero where the chain came back without any
 * @param hashes transactions that were booked above it
 */
export async function lookAgainAbove(
  sql: Sql,
  height: Height,
  hashes: readonly Hash32[],
): Promise<void> {
  await sql.query(
    `WITH above AS (
       SELECT address, asset FROM sweep_due WHERE height > $1 ORDER BY address, asset FOR UPDATE)
     UPDATE sweep_due due SET height = $1
       FROM above WHERE due.address = above.address AND due.asset = above.asset`,
    [Math.max(0, height)],
  );
  const rows = await sql.query<{ id: string }>(
    `SELECT id::text FROM sweep WHERE block_number > $1
     UNION SELECT sweep_id::text FROM sweep_attempt WHERE hash = ANY ($2::text[])`,
    [height, hashes],
  );
  await lookAgain(
    sql,
    rows.map(({ id }) => storedInteger(id)),
    0,
  );
}
