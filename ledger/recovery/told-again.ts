/** Events that a recovery tells again, as they were written under numbers that had stood for others. */
import type { Sql } from "../../runtime/sql/sql.js";
import type { NewEvent } from "../events.js";
import { hasToldNumber, TOLD_BEFORE } from "../guard/told-before.js";
import { storedInteger } from "../stored-values.js";

const AS_OTHERS = `
  WITH told AS MATERIALIZED (${TOLD_BEFORE} AND resolved_at IS NULL),
       taken_over AS MATERIALIZED (${TOLD_BEFORE} AND resolved_at IS NOT NULL),
       as_others AS (
         SELECT event.seq, event.type, event.data FROM event
          WHERE ${hasToldNumber()} AND NOT ${hasToldNumber("taken_over")}
            AND NOT EXISTS (
              SELECT 1 FROM event later
               WHERE later.seq > (SELECT seq FROM told)
                 AND coalesce(later.data ->> 'depositId', later.data ->> 'withdrawalId')
                   = coalesce(event.data ->> 'depositId', event.data ->> 'withdrawalId')))`;

/**
 * Events that were written behind the loss, before anybody met it, under numbers that were told: who
 * follows the stream has these numbers behind him, so that they are told again, but for what a later one
 * has overtaken that he will see. Their time is behind that of the event that was told. What an earlier
 * recovery has told again is a row of its own, and is told once more where that has such a number as well.
 */
export function toldAsOthers(tx: Sql): Promise<NewEvent[]> {
  return tx.query<NewEvent>(`${AS_OTHERS} SELECT type, data FROM as_others ORDER BY seq`);
}

/** How many these are. */
export async function countToldAsOthers(sql: Sql): Promise<number> {
  const rows = await sql.query<{ count: string }>(
    `${AS_OTHERS} SELECT count(*)::text AS count FROM as_others`,
  );
  return storedInteger(rows[0]?.count);
}
