/** What payments cost and earned, by whole UTC days: from the newest journal entries, never from all. */
import type { Sql } from "../../runtime/sql/sql.js";
import { storedAtoken, storedTime } from "../stored-values.js";
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

/** What was counted. */
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

/** Fees of the last days. @param maxEntries for tests */
export async function readFeeDays(
  sql: Sql,
  from: Date,
  maxEntries = MAX_ENTRIES,
): Promise<FeeDays> {
  const whole = await wholeDaysFrom(sql, from, maxEntries);
  const rows = await sql.query<Record<"day" | "asset" | "network" | "service" | "failed", string>>(
    `SELECT to_char(e.posted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, p.asset,
            coalesce(sum(side.units) FILTER (WHERE side.account = $3), 0)::text AS network,
            coalesce(-sum(side.units) FILTER (WHERE side.account = $4), 0)::text AS service,
            coalesce(-sum(side.units) FILTER (WHERE side.account = $5), 0)::text AS failed
       FROM journal_entry e JOIN posting p ON p.journal_id = e.id
      CROSS JOIN LATERAL (VALUES (p.debit, p.amount_units), (p.credit, -p.amount_units))
            AS side (account, units)
      WHERE e.id >= $2 AND e.posted_at >= $1 AND side.account IN ($3, $4, $5)
      GROUP BY 1, 2 ORDER BY 1 DESC, 2`,
    [whole.from, whole.firstId, NETWORK_FEE, WITHDRAWAL_FEES, FAILED_PAYOUTS],
  );
  const days = rows.map(({ day, asset, network, service, failed }) => ({
    day,
    asset,
    networkFeeUnits: storedAtoken(network),
    serviceFeeUnits: storedAtoken(service),
    failedPayoutUnits: storedAtoken(failed),
  }));
  return { from: whole.from, days };
}

/** Where to begin: behind the last day of which an entry is left out, and not behind the newest day. */
async function wholeDaysFrom(
  sql: Sql,
  from: Date,
  maxEntries: number,
): Promise<{ readonly from: Date; readonly firstId: string }> {
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
  if (whole <= from) return { from, firstId: row?.first_id ?? "0" };
  if (whole <= newestDay) return { from: whole, firstId: row?.first_id ?? "0" };
  // It has more entries than are looked at: it is counted all the same, since whoever asks asks for it.
  const begin = newestDay > from ? newestDay : from;
  return { from: begin, firstId: await firstIdSince(sql, begin) };
}

/** A number that is not behind those of a moment's entries: but for overlaps numbers rise with time. */
async function firstIdSince(sql: Sql, moment: Date): Promise<string> {
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
     SELECT (min(high) - $2)::text AS id FROM search`,
    [moment, OVERLAP_ENTRIES],
  );
  return row?.id ?? "0";
}

function timeOf(value: unknown): Date | undefined {
  return value === null || value === undefined ? undefined : new Date(storedTime(value));
}
