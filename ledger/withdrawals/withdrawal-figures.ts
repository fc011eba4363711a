/** Figures of withdrawals for metrics: what is open, and what ended since a moment. */
import type { Sql } from "../../runtime/sql/sql.js";
import { storedInteger } from "../stored-values.js";
import {
  isFinalStatus,
  isWithdrawalStatus,
  type WithdrawalStatus,
} from "../requests/withdrawal-status.js";
import { storedStatus } from "./withdrawals.js";

/** Counts and ages of one moment, of withdrawals that have not ended. */
export interface OpenFigures {
  readonly countByStatus: ReadonlyMap<WithdrawalStatus, number>;
  /** Age of the oldest one; 0 without one. */
  readonly oldestAgeSeconds: number;
}

/** Open withdrawals that are counted at most: beyond it a page says the bound. */
const MAX_COUNTED_OPEN = 100_000;

/** Events that one look at endings reads at most; the next look goes on behind them. */
const MAX_EVENTS = 50_000;

/** Counts what is open, from the index of open withdrawals alone. */
export async function openFigures(sql: Sql): Promise<OpenFigures> {
  const rows = await sql.query<{ status: string; count: string; age: string }>(
    `SELECT status, count(*)::text AS count,
            greatest(0, extract(epoch FROM now() - min(created_at)))::bigint::text AS age
       FROM (SELECT status, created_at FROM withdrawal
              WHERE phase IN ('waiting', 'open')
              ORDER BY position LIMIT $1) AS open
      GROUP BY status`,
    [MAX_COUNTED_OPEN],
  );
  return {
    countByStatus: new Map(rows.map((row) => [storedStatus(row.status), storedInteger(row.count)])),
    oldestAgeSeconds: Math.max(0, ...rows.map((row) => storedInteger(row.age))),
  };
}

/** What ended behind an event, and the event to look behind the next time. */
export interface Endings {
  readonly countByStatus: ReadonlyMap<WithdrawalStatus, number>;
  readonly lastSeq: number;
}

/** The newest event: where counting begins. */
export async function newestEvent(sql: Sql): Promise<number> {
  const rows = await sql.query<{ seq: string }>(`SELECT seq::text FROM event_counter`);
  return storedInteger(rows[0]?.seq);
}

/** Counts withdrawals that ended behind an event, a bounded number of events at a time. */
export async function endingsAfter(sql: Sql, afterSeq: number): Promise<Endings> {
  const rows = await sql.query<{ type: string; count: string; last: string }>(
    `SELECT type, count(*)::text AS count, max(seq)::text AS last
       FROM (SELECT seq, type FROM event WHERE seq > $1 ORDER BY seq LIMIT $2) AS page
      GROUP BY type`,
    [afterSeq, MAX_EVENTS],
  );
  const countByStatus = new Map<WithdrawalStatus, number>();
  for (const { type, count } of rows) {
    const status = type.replace(/^withdrawal\./, "");
    if (isWithdrawalStatus(status) && isFinalStatus(status) && status !== type) {
      countByStatus.set(status, storedInteger(count));
    }
  }
  return {
    countByStatus,
    lastSeq: Math.max(afterSeq, ...rows.map((row) => storedInteger(row.last))),
  };
}
