/**
 * What homes had told before a loss, as the incidents of recoveries keep it, and by that what was written
 * behind the loss under numbers that stood for something else.
 */

/** SQL: when the last event was read that a home had told; of former releases when it was written. */
const EVENTS_AT = `coalesce(details ->> 'readAt', details ->> 'eventAt')::timestamptz`;

/**
 * SQL, rows of a CTE: up to which event of an epoch, and below which address index, all was told before a
 * loss, and until when: `at` of events, `addresses_at` of addresses, which may have been given out since.
 * Where a person has said of when the backup is, all that was written since has numbers of others, of
 * whichever epoch.
 */
export const TOLD_BEFORE = `
  SELECT CASE WHEN details ->> 'backupAt' IS NULL THEN (details ->> 'epoch')::integer
              ELSE 1 END AS epoch,
         greatest((details ->> 'eventSeq')::bigint, (details ->> 'toldSeq')::bigint) AS seq,
         (details ->> 'nextAddressIndex')::bigint AS next_address_index,
         coalesce((details ->> 'backupAt')::timestamptz, ${EVENTS_AT}) AS at,
         greatest((details ->> 'addressAt')::timestamptz, ${EVENTS_AT}) AS addresses_at,
         details, resolved_at
    FROM incident WHERE kind = 'RECOVERY'`;

/**
 * SQL: of `event`, beside `TOLD_BEFORE` in a CTE, whether it was written behind a loss, before anybody met
 * it, under a number that stood for another event: in the epoch of then, or in one that another home's mark
 * began too low. It is told again in the next epoch, by a number of its
 * own: under both, who was behind would hear it twice. A sub-select of its own for each row, so that pages
 * are read in the order of numbers.
 * @param told name of the CTE
 */
export function hasToldNumber(told = "told"): string {
  return `(
  SELECT count(*) > 0 FROM ${told} AS told
   WHERE told.epoch <= event.epoch AND event.seq <= told.seq AND event.at > told.at)`;
}
