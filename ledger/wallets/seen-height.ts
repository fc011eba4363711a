/** How far this ledger has seen the chain: a node that shows less lacks the newest blocks. */
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedHeight } from "../stored-values.js";

/** The highest block that the watcher has booked or a lane was shown; -1 before there is any. */
export async function readSeenHeight(sql: Sql): Promise<Height> {
  const [row] = await sql.query<{ height: string }>(
    `SELECT greatest(height, (SELECT max(seen_height) FROM hot_wallet))::text AS height
       FROM watch_cursor`,
  );
  return storedHeight(row?.height ?? "-1");
}
