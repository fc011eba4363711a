/**
 * What lies before a moment for ever: entries of before, by the clock, that were there when a statement first
 * told the books up to that moment or a later one (`statement_end`, migration 47). The clock alone may go
 * back, as that of a standby does that takes over.
 */
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { sleep } from "../../runtime/process/task.js";
import { storedTime } from "../stored-values.js";
import { writersOf } from "../table-writers.js";

/** Pause between two looks at whether entries are still being written. */
const LOOK_PAUSE_MS = 20;

/**
 * Remembers that the books are told up to a moment that is over, behind all who write at this moment. A read
 * that begins afterwards finds before it (`beforeSql`) what any later one will find.
 * @throws the signal's reason
 */
export async function tellUntil(
  database: SqlDatabase,
  moment: Date,
  options: { readonly signal: AbortSignal },
): Promise<void> {
  await behindWriters(database, options);
  await database.transaction(async (tx) => {
    // One after the other: a later end knows the entries of an earlier one, too.
    await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended('statement end', 8082))`);
    await tx.query(
      `INSERT INTO statement_end (at, entry_id)
       SELECT $1, coalesce((SELECT max(id) FROM journal_entry), 0)
        WHERE NOT EXISTS (SELECT FROM statement_end WHERE at >= $1)`,
      [moment],
    );
  });
  // Entries with lower numbers than the last one may have been written meanwhile, and not be seen yet.
  await behindWriters(database, options);
}

/** Whether an entry lies before a moment; both are SQL. */
export function beforeSql(entry: string, moment: string): string {
  return `(${entry}.posted_at < ${moment} AND ${entry}.id <= coalesce(
    (SELECT s.entry_id FROM statement_end s WHERE s.at >= ${moment} ORDER BY s.at LIMIT 1),
    ${entry}.id))`;
}

/** Up to when the books were told at all; undefined where they never were. */
export async function toldUntil(sql: Sql): Promise<string | undefined> {
  const [row] = await sql.query<{ at: unknown }>(`SELECT max(at) AS at FROM statement_end`);
  return row === undefined || row.at === null ? undefined : storedTime(row.at);
}

/**
 * Waits until whoever writes entries at this moment has committed or given up: such an entry has a time
 * before now, and nobody sees it yet. Entries of others come later, and are of a later time.
 */
async function behindWriters(
  sql: Sql,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const writers = () => writersOf(sql, ["journal_entry"]);
  let open = await writers();
  while (open.size > 0) {
    await sleep(LOOK_PAUSE_MS, { signal });
    const present = await writers();
    open = new Set([...open].filter((writer) => present.has(writer)));
  }
}
