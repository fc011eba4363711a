/** Who writes to tables at this moment: what they have written, nobody else sees before they commit. */
import type { Sql } from "../runtime/sql/sql.js";

/**
 * Transactions that are open and write, or have written, to any of the tables; no two ever have the same
 * name. A statement holds its table before it draws numbers and times for its rows, and lets go of it behind
 * the commit: whoever is not among them any more has rows that are seen, or none.
 */
export async function writersOf(sql: Sql, tables: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await sql.query<{ writer: string }>(
    `SELECT DISTINCT virtualtransaction AS writer FROM pg_locks
      WHERE locktype = 'relation' AND relation = ANY ($1::regclass[]::oid[]) AND granted
        AND mode = 'RowExclusiveLock'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    [tables],
  );
  return new Set(rows.map(({ writer }) => writer));
}
