/** How long deposits and withdrawals take, read from the newest events. */
import type { Sql } from "../../runtime/sql/sql.js";
import { storedInteger, storedTime } from "../stored-values.js";

/** What took its time. */
export type DurationKind = "deposit" | "withdrawal";

/** Some that ended one after the other. */
export interface DurationSpan {
  /** When the first and the last of them ended, RFC 3339 UTC. */
  readonly from: string;
  readonly to: string;
  readonly count: number;
  readonly medianSeconds: number;
  /** 95 of 100 took no longer. */
  readonly p95Seconds: number;
}

/** Events that are looked at, at most. */
const MAX_EVENTS = 10_000;

/** Spans of each kind, at most. */
const SPANS = 40;

/**
 * Deposits from when they were seen to their credit, withdrawals from the request to their settlement,
 * of the newest events; each kind oldest first.
 */
export async function readDurations(
  sql: Sql,
): Promise<Readonly<Record<DurationKind, readonly DurationSpan[]>>> {
  const rows = await sql.query<{
    kind: string;
    first: unknown;
    last: unknown;
    count: string;
    median: number;
    high: number;
  }>(
    `WITH newest AS (SELECT type, data, at FROM event ORDER BY seq DESC LIMIT $1),
          ended AS (
            SELECT 'deposit' AS kind, n.at, n.at - d.seen_at AS took
              FROM newest n JOIN deposit d ON d.id = n.data->>'depositId'
             WHERE n.type = 'deposit.credited'
             UNION ALL
            SELECT 'withdrawal', n.at, n.at - w.created_at
              FROM newest n JOIN withdrawal w ON w.id = n.data->>'withdrawalId'
             WHERE n.type = 'withdrawal.settled'),
          placed AS (
            SELECT kind, at, greatest(0, extract(epoch FROM took))::float8 AS seconds,
                   ntile($2) OVER (PARTITION BY kind ORDER BY at) AS span FROM ended)
     SELECT kind, min(at) AS first, max(at) AS last, count(*)::text AS count,
            percentile_disc(0.5) WITHIN GROUP (ORDER BY seconds) AS median,
            percentile_disc(0.95) WITHIN GROUP (ORDER BY seconds) AS high
       FROM placed GROUP BY kind, span ORDER BY kind, span`,
    [MAX_EVENTS, SPANS],
  );
  const spansOf = (kind: DurationKind) =>
    rows
      .filter((row) => row.kind === kind)
      .map((row) => ({
        from: storedTime(row.first),
        to: storedTime(row.last),
        count: storedInteger(row.count),
        medianSeconds: row.median,
        p95Seconds: row.high,
      }));
  return { deposit: spansOf("deposit"), withdrawal: spansOf("withdrawal") };
}
