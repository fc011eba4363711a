/**
 * Tables of the writer's session that hold a batch's rows until they are merged. They live as long as the
 * session, and only it can keep them young: the server's own upkeep has no way to temporary tables.
 */
import type { Sql } from "../../runtime/sql/sql.js";
import type { CopySql, SqlSession } from "../../runtime/sql/sql-session.js";
import { ROW_COLUMNS, ROW_TABLES, type RowTable } from "../store/row-columns.js";

/**
 * Age behind which they are made young: a twentieth of that from which the server is urged to do it
 * (`autovacuum_freeze_max_age`), and some hours of a database that commits a thousand times a second.
 */
export const MAX_STAGED_AGE = 10_000_000;

const STAGED: readonly RowTable[] = ROW_TABLES.filter(isStaged);

/** Whether rows of this table are staged, and not appended to a table of the index. */
export function isStaged(table: RowTable): boolean {
  return table.startsWith("stage_");
}

/** Makes them where the session has none yet; they empty themselves at the end of each transaction. */
export async function openStaged(tx: CopySql): Promise<void> {
  const statements = STAGED.map(
    (table) =>
      `CREATE TEMPORARY TABLE IF NOT EXISTS ${table} (${ROW_COLUMNS[table].join(", ")}) ` +
      "ON COMMIT DELETE ROWS",
  );
  await tx.query(statements.join(";\n"));
}

/**
 * Makes them young where they are older than so many transactions of the whole server. The oldest table of
 * a database decides how long the server has to remember which transactions took place; for one that grows
 * older all the time it takes no transaction of anybody any more, in the end.
 * @param maxAge in ids of transactions, or of row locks that several share
 */
export async function renewStaged(session: SqlSession, maxAge: number): Promise<void> {
  if ((await stagedAge(session)) <= maxAge) return;
  // Unlike what a commit empties, what is truncated gets a file of its own, and is as old as that.
  await session.transaction((tx) => tx.query(`TRUNCATE ${STAGED.join(", ")}`));
}

/** Age of the oldest staged table, in transactions; 0 without any. */
async function stagedAge(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ age: number | null }>(
    `SELECT max(greatest(age(relfrozenxid), mxid_age(relminmxid))) AS age FROM pg_class
     WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'`,
  );
  return row?.age ?? 0;
}
