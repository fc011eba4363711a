/** How many rows some work reads: what stays the same on every machine, as time does not. */
import type { Sql } from "../../../runtime/sql/sql.js";

/** Rows of tables that some work in a transaction reads; a table that it does not touch is left out. */
export async function readBy(
  tx: Sql,
  tables: readonly string[],
  work: () => Promise<unknown>,
): Promise<Record<string, number>> {
  // What the connection has not reported yet stands in this view, also of former transactions.
  const counts = () =>
    tx.query<{ name: string; read: string }>(
      `SELECT relname AS name, (seq_tup_read + coalesce(idx_tup_fetch, 0))::text AS read
         FROM pg_stat_xact_user_tables WHERE relname = ANY ($1::text[])`,
      [tables],
    );
  const before = new Map((await counts()).map(({ name, read }) => [name, Number(read)]));
  await work();
  const after = await counts();
  return Object.fromEntries(
    after.map(({ name, read }) => [name, Number(read) - (before.get(name) ?? 0)]),
  );
}
