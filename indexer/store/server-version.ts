/** Which PostgreSQL the index can lie in. */
import type { Sql } from "../../runtime/sql/sql.js";
import { IndexerError } from "../errors.js";

/** As `server_version_num` has it: the first with `date_bin`, by which candles are made. */
const OLDEST = 140_000;

/**
 * Holds that the server knows what the index asks of it. An older one would take blocks until the first swap,
 * and then refuse the same batch again and again.
 * @throws DATABASE_TOO_OLD
 */
export async function assertServerVersion(sql: Sql): Promise<void> {
  const [row] = await sql.query<{ number: number; version: string }>(
    `SELECT current_setting('server_version_num')::integer AS number,
            current_setting('server_version') AS version`,
  );
  if (row === undefined || row.number >= OLDEST) return;
  throw new IndexerError(
    "DATABASE_TOO_OLD",
    `the indexer needs PostgreSQL ${OLDEST / 10_000} or newer, and the server behind DATABASE_URL is ` +
      `${row.version}: update it, or leave the indexer out (npm start -- --no-indexer)`,
    { details: { version: row.version } },
  );
}
