/** Events of a ledger, for tests that read what they say. */
import { listEventTexts, type StoredEvent } from "../../ledger/events.js";
import type { Sql } from "../../runtime/sql/sql.js";

/** As `listEventTexts`, each parsed. */
export async function listEvents(
  sql: Sql,
  page: { readonly afterSeq: number; readonly limit: number },
): Promise<StoredEvent[]> {
  const found = await listEventTexts(sql, page);
  return found.map(({ json }) => JSON.parse(json) as StoredEvent);
}
