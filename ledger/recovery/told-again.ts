/** Events that a recovery tells again, as they were written under numbers that had stood for others. */
import type { Sql } from "../../runtime/sql/sql.js";
import type { NewEvent } from "../events.js";
import { hasToldNumber, TOLD_BEFORE } from "../guard/told-before.js";
import { balanceFields } from "../journal/amount-fields.js";
import { storedInteger } from "../stored-values.js";

/** SQL: the deposit or the withdrawal that an event is about. */
const SUBJECT = `coalesce(event.data ->> 'depositId', event.data ->> 'withdrawalId')`;

// Of withdrawals only the end has an amount to count, and it is the last event.
const AS_OTHERS = `
  WITH told AS MATERIALIZED (${TOLD_BEFORE} AND resolved_at IS NULL),
       taken_over AS MATERIALIZED (${TOLD_BEFORE} AND resolved_at IS NOT NULL),
       hidden AS MATERIALIZED (
         SELECT event.seq, event.type, event.data, ${SUBJECT} AS subject FROM event
          WHERE ${hasToldNumber()} AND NOT ${hasToldNumber("taken_over")}),
       standing AS MATERIALIZED (
         SELECT DISTINCT ON (subject) event.seq, event.type, event.data, ${SUBJECT} AS subject
           FROM event
          WHERE event.seq > (SELECT max(hidden.seq) FROM hidden)
            AND ${SUBJECT} IN (SELECT hidden.subject FROM hidden)
          ORDER BY subject, event.seq DESC),
       again AS MATERIALIZED (
         SELECT hidden.seq, hidden.type, hidden.data, hidden.subject
           FROM hidden LEFT JOIN standing ON standing.subject = hidden.subject
          WHERE standing.subject IS NULL OR hidden.type IN ('deposit.credited', 'deposit.reversed')),
       as_others AS (
         SELECT seq, type, data, false AS is_repeated FROM again
          UNION ALL
         SELECT standing.seq, standing.type, standing.data, true
           FROM standing JOIN (SELECT DISTINCT ON (subject) subject, type FROM again
                                ORDER BY subject, seq DESC) AS newest USING (subject)
          WHERE newest.type <> standing.type)`;

interface AgainRow extends NewEvent {
  readonly is_repeated: boolean;
}

/**
 * Events that were written behind the loss, before anybody met it, under numbers that were told: who
 * follows the stream has these numbers behind him, so that they are told again, but for what a later one
 * has overtaken that he will see. Amounts are never overtaken, as each of them is counted; where one is told
 * behind the event that says how the deposit stands, that event follows once more, with nothing to count.
 * Their time is behind that of the event that was told. What an earlier recovery has told again is a row of
 * its own, and is told once more where that has such a number as well.
 *
 * Behind a backup of long ago these are more than one statement takes, or a process holds: they are read by a
 * cursor, which sees the ledger as it is now, whatever the transaction writes since.
 * @param pageRows events of one page at most
 * @returns what reads the next page, inside the same transaction; an empty one behind the last
 */
export async function toldAsOthers(tx: Sql, pageRows: number): Promise<() => Promise<NewEvent[]>> {
  await tx.query(
    `DECLARE told_again NO SCROLL CURSOR FOR
     ${AS_OTHERS} SELECT type, data, is_repeated FROM as_others ORDER BY seq`,
  );
  return async () => {
    const rows = await tx.query<AgainRow>(`FETCH ${pageRows} FROM told_again`);
    return rows.map(({ type, data, is_repeated }) =>
      is_repeated ? { type, data: { ...data, ...nothingOf(type, data) } } : { type, data },
    );
  };
}

/** What a deposit's event says of a balance that does not change by it. */
function nothingOf(type: NewEvent["type"], data: NewEvent["data"]): NewEvent["data"] {
  const asset = String(data["asset"]);
  if (type === "deposit.credited") return balanceFields("credited", asset, 0n);
  return type === "deposit.reversed" ? balanceFields("debited", asset, 0n) : {};
}

/** How many these are. */
export async function countToldAsOthers(sql: Sql): Promise<number> {
  const rows = await sql.query<{ count: string }>(
    `${AS_OTHERS} SELECT count(*)::text AS count FROM as_others`,
  );
  return storedInteger(rows[0]?.count);
}
