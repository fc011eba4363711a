/** What persons are asked to send from cold storage: one request of an asset at a time. */
import type { Address } from "../../chain/address.js";
import { atMostWord, type Height, MAX_WORD } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedAddress, storedAtoken, storedInteger } from "../stored-values.js";
import { readPayable } from "../wallets/payable-wallets.js";

/** What is to come, and what of it came. */
export interface RefillRequest {
  readonly id: number;
  readonly asset: string;
  /** What is to come from cold storage, and what came so far. */
  readonly amountUnits: bigint;
  readonly cameUnits: bigint;
  /** Where it has to go, as one wallet alone needs it; undefined for any of those that may be given coins. */
  readonly wallet: Address | undefined;
  /** Where it may go now: that one, or all wallets that may be given coins, the first registered first. */
  readonly wallets: readonly Address[];
}

/**
 * Open requests to persons, in the order of their assets. One whose wallet may be given no coins now is not
 * among them, nor is one for any while none may: whoever read it would send them to a key that is lost, or
 * in other hands.
 */
export async function openRefills(sql: Sql): Promise<RefillRequest[]> {
  const rows = await sql.query<
    Record<"id" | "asset" | "amount" | "came", string> & { readonly wallet: string | null }
  >(
    `SELECT id::text, asset, amount_units::text AS amount, came_units::text AS came, wallet
       FROM refill_request WHERE state = 'open' ORDER BY asset`,
  );
  if (rows.length === 0) return [];
  const payable = await readPayable(sql);
  return rows.flatMap((row) => {
    const wallet = row.wallet === null ? undefined : storedAddress(row.wallet);
    const wallets = payable.filter((each) => wallet === undefined || each === wallet);
    if (wallets.length === 0) return [];
    return [
      {
        id: storedInteger(row.id),
        asset: row.asset,
        amountUnits: storedAtoken(row.amount),
        cameUnits: storedAtoken(row.came),
        wallet,
        wallets,
      },
    ];
  });
}

/**
 * Asks persons for a refill, once until it came or is not needed any more; for no more than there can be of
 * anything: a token whose contract lies may have its customers wait for more. @returns true when new
 */
export async function askForRefill(
  sql: Sql,
  {
    asset,
    amountUnits,
    wallet,
  }: Pick<RefillRequest, "asset" | "amountUnits"> & { readonly wallet?: Address | undefined },
): Promise<boolean> {
  const rows = await sql.query(
    `WITH asked AS (
       INSERT INTO refill_request (asset, amount_units, wallet) VALUES ($1, $2, $3)
       ON CONFLICT (asset) WHERE state = 'open' DO NOTHING RETURNING 1)
     SELECT 1 FROM asked`,
    [asset, atMostWord(amountUnits).toString(), wallet ?? null],
  );
  return rows.length > 0;
}

/** What is wanted now of an asset that something is asked for already. */
export interface RefillChange {
  readonly asset: string;
  /** What is still to come, as balances at this height say. */
  readonly wantedUnits: bigint;
  readonly seenHeight: Height;
  /** So much less may be on its way without the request being raised. */
  readonly slackUnits: bigint;
  readonly wallet: Address | undefined;
}

/**
 * Has the open request follow what is wanted now: its wallet at once, since the one that it names may be
 * given nothing any more, and what is still to come. That is raised only by balances that have all that is
 * counted as come, and lowered only where all that they have is counted: else what is on its way between
 * chain and books would be asked for twice, or fill what it was not sent for. One that coins filled or
 * lessened at this very moment is looked at anew by who calls again.
 * @returns undefined where it stays as it is, or none is open
 */
export async function changeRefill(
  sql: Sql,
  { asset, wantedUnits, seenHeight, slackUnits, wallet }: RefillChange,
): Promise<"moved" | "changed" | undefined> {
  const rows = await sql.query<{ moved: boolean }>(
    `WITH was AS (
       SELECT r.id, r.wallet, r.amount_units, r.came_units,
              CASE WHEN left_units + $4::numeric < $2::numeric AND booked <= $5::bigint
                     OR left_units > $2::numeric AND booked >= $5::bigint
                   THEN least(r.came_units + $2::numeric, $6::numeric) ELSE r.amount_units END AS next_units
         FROM refill_request r
        CROSS JOIN LATERAL (SELECT r.amount_units - r.came_units AS left_units) AS l
        CROSS JOIN (SELECT coalesce(max(height), 0) AS booked FROM watch_cursor) AS c
        WHERE r.asset = $1 AND r.state = 'open'),
     followed AS (
       UPDATE refill_request r
          SET wallet = $3::text, amount_units = was.next_units, changed_at = now()
         FROM was
        WHERE r.id = was.id AND r.state = 'open' AND r.wallet IS NOT DISTINCT FROM was.wallet
          AND r.amount_units = was.amount_units AND r.came_units = was.came_units
          AND (r.wallet IS DISTINCT FROM $3::text OR r.amount_units <> was.next_units)
       RETURNING was.wallet IS DISTINCT FROM $3::text AS moved)
     SELECT moved FROM followed`,
    [
      asset,
      atMostWord(wantedUnits).toString(),
      wallet ?? null,
      slackUnits.toString(),
      seenHeight,
      MAX_WORD.toString(),
    ],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  return row.moved ? "moved" : "changed";
}

/**
 * The wallets have less again than a refill is to bring: what was seen before counts no more.
 * @param kind which requests: those for any wallet alone, or all
 */
export async function keepRefill(
  sql: Sql,
  { asset, kind }: { readonly asset: string; readonly kind: "any-wallet" | "all" },
): Promise<void> {
  await sql.query(
    `UPDATE refill_request SET enough_height = NULL
      WHERE asset = $1 AND state = 'open' AND enough_height IS NOT NULL AND ($2::boolean OR wallet IS NULL)`,
    [asset, kind === "all"],
  );
}

/**
 * Takes a request back that is not needed any more. Not before the books stand where the wallets were
 * first seen to have enough: what came from cold storage may be what makes it needless, and fills it.
 * @param seenHeight of the newest of the balances that are enough; the first one since the wallets had
 *   less is remembered
 * @param kind which requests: those for one wallet alone, or all
 * @returns true when there was one
 */
export async function withdrawRefill(
  sql: Sql,
  {
    asset,
    seenHeight,
    kind,
  }: {
    readonly asset: string;
    readonly seenHeight: Height;
    readonly kind: "one-wallet" | "all";
  },
): Promise<boolean> {
  const rows = await sql.query<{ state: string }>(
    `WITH seen AS (
       UPDATE refill_request
          SET enough_height = coalesce(enough_height, $2),
              state = CASE WHEN EXISTS (SELECT 1 FROM watch_cursor
                                         WHERE height >= coalesce(enough_height, $2))
                           THEN 'withdrawn' ELSE 'open' END,
              changed_at = now()
        WHERE asset = $1 AND state = 'open' AND ($3::boolean OR wallet IS NOT NULL)
          AND (enough_height IS NULL
               OR EXISTS (SELECT 1 FROM watch_cursor WHERE height >= enough_height))
       RETURNING state)
     SELECT state FROM seen`,
    [asset, seenHeight, kind === "all"],
  );
  return rows[0]?.state === "withdrawn";
}

/** Takes back the requests of assets that no band asks for any more. @returns those assets */
export async function withdrawUnbanded(sql: Sql, banded: readonly string[]): Promise<string[]> {
  const rows = await sql.query<{ asset: string }>(
    `WITH ended AS (
       UPDATE refill_request SET state = 'withdrawn', changed_at = now()
        WHERE state = 'open' AND asset <> ALL ($1::text[]) RETURNING asset)
     SELECT asset FROM ended`,
    [banded],
  );
  return rows.map(({ asset }) => asset);
}
