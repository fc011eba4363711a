/**
 * The database's clock, by which rows are due and have their age. It is a host's: it goes back where that is
 * set, or where a standby takes over whose own is late.
 */
import type { Sql } from "../runtime/sql/sql.js";
import { storedInteger } from "./stored-values.js";

/** What it says, milliseconds since 1970 UTC. */
export async function readDatabaseClock(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ now_ms: string }>(
    `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text AS now_ms`,
  );
  return storedInteger(row?.now_ms);
}

/**
 * SQL: seconds since a time of a row, for waits of minutes. One that is still to come is of a clock that has
 * gone back since, by as much at least: it is taken for as old as it is ahead, and no wait is twice as long.
 */
export function ageSecondsSql(time: string): string {
  return `abs(extract(epoch FROM clock_timestamp() - ${time}))`;
}
