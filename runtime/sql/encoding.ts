/** How a database writes text, which decides what it can hold. */
import { SqlError } from "./sql-errors.js";
import type { Sql } from "./sql.js";

/** UTF8 has a place for every character; a server under SQL_ASCII keeps bytes as they come. */
const HOLDS_ALL = new Set(["UTF8", "SQL_ASCII"]);

/**
 * Holds that a database can hold every text. In one of another encoding a character that it has no place
 * for fails the statement each time: what a stranger's contract says would keep a process from its work for
 * ever.
 * @throws DATABASE_ENCODING
 */
export async function assertHoldsText(sql: Sql): Promise<void> {
  const [row] = await sql.query<{ encoding: string }>(
    "SELECT current_setting('server_encoding') AS encoding",
  );
  const encoding = row?.encoding ?? "";
  if (HOLDS_ALL.has(encoding)) return;
  throw new SqlError(
    "DATABASE_ENCODING",
    `DATABASE_ENCODING: the database writes text as ${encoding}, which cannot hold all of it. ` +
      "Make one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0 (and a LOCALE that fits, such " +
      "as 'C.UTF-8'), stop what uses this one, and bring its tables over with pg_dump and pg_restore " +
      "(docs/restore.md).",
    { details: { encoding } },
  );
}
