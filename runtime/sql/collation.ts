/** The order of texts, by which indexes find their keys. */
import { SqlError } from "./sql-errors.js";

type Texts = Readonly<Record<"recorded" | "actual" | "name", string | null>>;

/** What is asked of a connection here. */
interface Asked {
  query(text: string): Promise<{ readonly rows: readonly Texts[] }>;
}

/** Read by its name: servers before PostgreSQL 15 have no such column. */
const RECORDED = `
  SELECT to_jsonb(d) ->> 'datcollversion' AS recorded FROM pg_database d
   WHERE datname = current_database()`;

const ACTUAL = `
  SELECT pg_database_collation_actual_version(oid) AS actual, quote_ident(datname) AS name
    FROM pg_database WHERE datname = current_database()`;

/**
 * Holds that the server compares texts as it did when it built the database's indexes. Behind another release
 * of its libraries (a standby on a newer system that takes over, a folder that was moved, another image) an
 * index is in the former order, and a key that is there may not be found in it: unique keys, which keep a
 * request from being paid twice, hold nothing. PostgreSQL itself only warns. Asked of each connection: the
 * server behind the next one may be another. Orders that have no version ("C") do not change.
 * @throws DATABASE_COLLATION with PostgreSQL 15 and newer; those before keep no version
 */
export async function assertOrderStands(connection: Asked): Promise<void> {
  const stored = await connection.query(RECORDED);
  const recorded = stored.rows[0]?.recorded ?? null;
  if (recorded === null) return;
  const now = await connection.query(ACTUAL);
  const { actual = null, name = "" } = now.rows[0] ?? {};
  if (actual === recorded) return;
  // PostgreSQL forgets no version where there is none to take its place.
  const remedy =
    actual === null
      ? "bring its tables into a new one with pg_dump and pg_restore (docs/restore.md)."
      : `say REINDEX DATABASE ${name}; ALTER DATABASE ${name} REFRESH COLLATION VERSION; in it as its ` +
        "owner, and start again (docs/operations.md, Database roles).";
  throw new SqlError(
    "DATABASE_COLLATION",
    `DATABASE_COLLATION: the server orders texts by version ${actual ?? "(none)"} of its libraries, and ` +
      `the database's indexes were built by ${recorded}: keys that are there may not be found. Stop what ` +
      `uses it, ${remedy}`,
    { details: { recorded, actual } },
  );
}
