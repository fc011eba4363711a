/** What payments cost and earned, by whole UTC days: from the newest journal entries, never from all. */
import type { Sql } from "../../runtime/sql/sql.js";
import { storedAtoken, storedInteger, storedTime } from "../stored-values.js";
import { FAILED_PAYOUTS, NETWORK_FEE, WITHDRAWAL_FEES } from "../journal/accounts.js";

/** One asset on one day; units may be negative where an entry was reversed. */
export interface FeeDay {
  /** YYYY-MM-DD, UTC. */
  readonly day: string;
  readonly asset: string;
  /** Paid to the network, the exchange's expense. */
  readonly networkFeeUnits: bigint;
  /** Charged to customers for withdrawals that were paid. */
  readonly serviceFeeUnits: bigint;
  /** Charged to customers for payouts that failed on the chain. */
  readonly failedPayoutUnits: bigint;
}

/** Fees of the newest days, of as many as one look counts. */
export interface FeeDays {
  /** Begin of the first day that was counted. */
  readonly from: Date;
  /** The newest day first. */
  readonly days: readonly FeeDay[];
}

/** Journal entries that are looked at: of days that are not wholly among them the newest alone is counted. */
const MAX_ENTRIES = 100_000;

/** Entries of one moment have numbers at most so far apart: their transactions overlapped. */
const OVERLAP_ENTRIES = 1_000;

/** Entries by their numbers. */
interface EntryRange {
  readonly after: number;
  readonly upTo?: number;
}

/** What was counted of one day; entries are never changed. */
interface CountedDay {
  readonly beginMs: number;
  /** Entries up to here are in the sums, and none comes before it any more. */
  readonly upTo: number;
  /** Key of the last of them: an older copy of the ledger may answer by now. */
  readonly lastKey: string | undefined;
  readonly days: readonly FeeDay[];
}

/**
 * What was counted of a day that has more entries than are looked at: whoever asks again has those counted
 * that came since. One for the life of a process.
 */
export class FeeTally {
  #counted: CountedDay | undefined;

  /**
   * Fees since the begin of the newest day.
   * @param firstId not behind its entries
   * @param entriesAtOnce of one statement
   */
  async since(
    sql: Sql,
    begin: Date,
    { firstId, entriesAtOnce }: { readonly firstId: number; readonly entriesAtOnce: number },
  ): Promise<readonly FeeDay[]> {
    const beginMs = begin.getTime();
    const known = this.#counted;
    const isKnown =
      known?.beginMs === beginMs && known.lastKey === (await lastKeyUpTo(sql, known.upTo));
    let counted: CountedDay = isKnown
      ? known
      : { beginMs, upTo: firstId - 1, lastKey: undefined, days: [] };
    const settled = await settledId(sql);
    while (counted.upTo < settled) {
      const upTo = Math.min(counted.upTo + entriesAtOnce, settled);
      const more = await feesSince(sql, begin, { after: counted.upTo, upTo });
      const lastKey = await lastKeyUpTo(sql, upTo);
      counted = { beginMs, upTo, lastKey, days: added(counted.days, more) };
      this.#counted = counted;
    }
    return added(counted.days, await feesSince(sql, begin, { after: counted.upTo }));
  }
}

/** Fees of the last days. @param options.maxEntries for tests */
export async function readFeeDays(
  sql: Sql,
  from: Date,
  { tally, maxEntries = MAX_ENTRIES }: { readonly tally: FeeTally; readonly maxEntries?: number },
): Promise<FeeDays> {
  const whole = await wholeDaysFrom(sql, from, maxEntries);
  const { from: begin, firstId } = whole;
  const days = whole.isCrowded
    ? await tally.since(sql, begin, { firstId, entriesAtOnce: maxEntries })
    : await feesSince(sql, begin, { after: firstId - 1 });
  return { from: begin, days };
}

async function feesSince(
  sql: Sql,
  begin: Date,
  { after, upTo = Number.MAX_SAFE_INTEGER }: EntryRange,
): Promise<readonly FeeDay[]> {
  const rows = await sql.query<Record<"day" | "asset" | "network" | "service" | "failed", string>>(
    `SELECT to_char(e.posted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, p.asset,
            coalesce(sum(side.units) FILTER (WHERE side.account = $3), 0)::text AS network,
            coalesce(-sum(side.units) FILTER (WHERE side.account = $4), 0)::text AS service,
            coalesce(-sum(side.units) FILTER (WHERE side.account = $5), 0)::text AS failed
       FROM journal_entry e JOIN posting p ON p.journal_id = e.id
      CROSS JOIN LATERAL (VALUES (p.debit, p.amount_units), (p.credit, -p.amount_units))
            AS side (account, units)
      WHERE e.id > $2 AND e.id <= $6 AND e.posted_at >= $1 AND side.account IN ($3, $4, $5)
      GROUP BY 1, 2 ORDER BY 1 DESC, 2`,
    [begin, after, NETWORK_FEE, WITHDRAWAL_FEES, FAILED_PAYOUTS, upTo],
  );
  return rows.map(({ day, asset, network, service, failed }) => ({
    day,
    asset,
    networkFeeUnits: storedAtoken(network),
    serviceFeeUnits: storedAtoken(service),
    failedPayoutUnits: storedAtoken(failed),
  }));
}

/** Sums of the same day and asset as one. */
function added(some: readonly FeeDay[], others: readonly FeeDay[]): readonly FeeDay[] {
  const sums = new Map(some.map((one) => [`${one.day} ${one.asset}`, one]));
  for (const other of others) {
    const key = `${other.day} ${other.asset}`;
    const sum = sums.get(key);
    const both = sum && {
      ...other,
      networkFeeUnits: sum.networkFeeUnits + other.networkFeeUnits,
      serviceFeeUnits: sum.serviceFeeUnits + other.serviceFeeUnits,
      failedPayoutUnits: sum.failedPayoutUnits + other.failedPayoutUnits,
    };
    sums.set(key, both ?? other);
  }
  return [...sums.values()].toSorted(
    (one, other) => order(other.day, one.day) || order(one.asset, other.asset),
  );
}

function order(one: string, other: string): number {
  return Number(one > other) - Number(one < other);
}

/** A number is drawn before its entry is committed: the chain of hashes says up to where none is missing. */
async function settledId(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ id: string }>(
    `SELECT row_key::text AS id FROM chain_cursor WHERE kind = 'entry'`,
  );
  return storedInteger(row?.id ?? "0");
}

async function lastKeyUpTo(sql: Sql, id: number): Promise<string | undefined> {
  const [row] = await sql.query<{ key: string }>(
    "SELECT idem_key AS key FROM journal_entry WHERE id <= $1 ORDER BY id DESC LIMIT 1",
    [id],
  );
  return row?.key;
}

/** Where to begin: behind the last day of which an entry is left out, and not behind the newest day. */
async function wholeDaysFrom(
  sql: Sql,
  from: Date,
  maxEntries: number,
): Promise<{ readonly from: Date; readonly firstId: number; readonly isCrowded: boolean }> {
  const [row] = await sql.query<{
    first_id: string | null;
    whole_from: unknown;
    newest_day: unknown;
  }>(
    `WITH first AS (
       SELECT min(id) AS id
         FROM (SELECT id FROM journal_entry ORDER BY id DESC LIMIT $1) AS newest),
     left_out AS (
       SELECT posted_at FROM journal_entry WHERE id < (SELECT id FROM first)
        ORDER BY id DESC LIMIT $2),
     newest AS (SELECT posted_at FROM journal_entry ORDER BY id DESC LIMIT $2)
     SELECT (SELECT id FROM first)::text AS first_id,
            (SELECT (date_trunc('day', max(posted_at) AT TIME ZONE 'UTC') + interval '1 day')
                      AT TIME ZONE 'UTC' FROM left_out) AS whole_from,
            (SELECT date_trunc('day', least(max(posted_at), now()) AT TIME ZONE 'UTC')
                      AT TIME ZONE 'UTC' FROM newest) AS newest_day`,
    [maxEntries, OVERLAP_ENTRIES],
  );
  const whole = timeOf(row?.whole_from) ?? from;
  const newestDay = timeOf(row?.newest_day) ?? from;
  const firstId = storedInteger(row?.first_id ?? "0");
  if (whole <= from) return { from, firstId, isCrowded: false };
  if (whole <= newestDay) return { from: whole, firstId, isCrowded: false };
  // It has more entries than are looked at: it is counted all the same, since whoever asks asks for it.
  const begin = newestDay > from ? newestDay : from;
  return { from: begin, firstId: await firstIdSince(sql, begin), isCrowded: true };
}

/** A number that is not behind those of a moment's entries: but for overlaps numbers rise with time. */
async function firstIdSince(sql: Sql, moment: Date): Promise<number> {
  const [row] = await sql.query<{ id: string }>(
    `WITH RECURSIVE search (low, high) AS (
       SELECT 0::bigint, coalesce(max(id), 0) + 1 FROM journal_entry
       UNION ALL
       SELECT CASE WHEN is_before THEN middle + 1 ELSE low END,
              CASE WHEN is_before THEN high ELSE middle END
         FROM (SELECT low, high, (low + high) / 2 AS middle FROM search WHERE low < high) AS half
        CROSS JOIN LATERAL (
          SELECT coalesce((SELECT e.posted_at < $1 FROM journal_entry e
                            WHERE e.id >= middle ORDER BY e.id LIMIT 1), false) AS is_before)
           AS entry)
     SELECT greatest(0, min(high) - $2)::text AS id FROM search`,
    [moment, OVERLAP_ENTRIES],
  );
  return storedInteger(row?.id ?? "0");
}

function timeOf(value: unknown): Date | undefined {
  return value === null || value === undefined ? undefined : new Date(storedTime(value));
}
