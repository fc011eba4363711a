/**
 * What homes had told before a loss, as the incidents of recoveries keep it, and by that what was written
 * behind the loss under numbers that stood for something else.
 */
import type { Sql } from "../../runtime/sql/sql.js";
import type { LedgerMark } from "./home-mark.js";

/** SQL: when the last event was read that a home had told; of former releases when it was written. */
const EVENTS_AT = `coalesce(mark.details ->> 'readAt', mark.details ->> 'eventAt')::timestamptz`;

/**
 * SQL, rows of a CTE: up to which event, and below which address index, all was told before a loss, and until
 * when: `at` of events, `addresses_at` of addresses, which may have been given out since. Homes that met the
 * ledger closed have rows of their own for events, and none for addresses: one that has two customers closes
 * it anew, and is named then.
 * Where a person has said of when the backup is, all that was written since has numbers of others.
 */
export const TOLD_BEFORE = `
  SELECT greatest((mark.details ->> 'eventSeq')::bigint,
                  (mark.details ->> 'toldSeq')::bigint) AS seq,
         (mark.details ->> 'nextAddressIndex')::bigint AS next_address_index,
         coalesce((mark.details ->> 'backupAt')::timestamptz, ${EVENTS_AT}) AS at,
         greatest((mark.details ->> 'addressAt')::timestamptz, ${EVENTS_AT}) AS addresses_at,
         mark.details, resolved_at
    FROM incident
   CROSS JOIN LATERAL (
     SELECT incident.details
      UNION ALL
     SELECT jsonb_array_elements(incident.details -> 'alsoTold')) AS mark (details)
   WHERE kind = 'RECOVERY'`;

/**
 * SQL: of `event`, beside `TOLD_BEFORE` in a CTE, whether it was written behind a loss, before anybody met
 * it, under a number that stood for another event: in the epoch of then, in one that another home's mark
 * began too low, or in a former one, by a standby of before the last recovery. It is told again in the next
 * epoch, by a number of its own: under both, who was behind would hear it twice. A sub-select of its own for
 * each row, so that pages are read in the order of numbers.
 * @param told name of the CTE
 */
export function hasToldNumber(told = "told"): string {
  return `(
  SELECT count(*) > 0 FROM ${told} AS told WHERE event.seq <= told.seq AND event.at > told.at)`;
}

/** The last event that a mark knows, as the incident has it that was opened by the mark. */
export function eventOf({ ledgerId, epoch, eventSeq, eventAt }: LedgerMark) {
  return { ledgerId, epoch, eventSeq, eventAt };
}

/**
 * Keeps what a home has told of events beside the mark that closed the ledger, where that is another one:
 * the recovery tells again what has these numbers, too. A repeat changes nothing. The worker's role may open
 * an incident and change none: it tells nobody of events.
 * @param tx under `holdForIncident`
 */
export async function addTold(tx: Sql, mark: LedgerMark): Promise<void> {
  const [role] = await tx.query<{ may_change: boolean }>(
    `SELECT has_column_privilege('public.incident', 'details', 'UPDATE') AS may_change`,
  );
  if (role?.may_change !== true) return;
  await tx.query(
    `UPDATE incident
        SET details = jsonb_set(details, '{alsoTold}',
                                coalesce(details -> 'alsoTold', '[]') || $1::jsonb)
      WHERE resolved_at IS NULL AND kind = 'RECOVERY'
        AND NOT details @> ($1::jsonb -> 0)
        AND NOT coalesce(details -> 'alsoTold', '[]') @> $1::jsonb`,
    [JSON.stringify([{ ...eventOf(mark), readAt: mark.readAt }])],
  );
}
