/** Whether a written time is one that there is. */

/**
 * Whether a calendar and a clock have it: read and written again it stays the same. JavaScript takes
 * the 30th of February for the 1st or 2nd of March and 24 hours for the next day: another moment than
 * was written.
 * @param local `YYYY-MM-DDThh:mm:ss`, without a zone
 */
export function isOfCalendar(local: string): boolean {
  const timeMs = Date.parse(`${local}Z`);
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(local);
}
