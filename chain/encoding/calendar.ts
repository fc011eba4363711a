/** Written times: whether there is such a time, and which one it is. */

/** RFC 3339 with a time zone. */
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;

/** A day. */
const DATE = /^\d{4}-\d\d-\d\d$/;

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

/**
 * Milliseconds since 1970 of a time of RFC 3339; NaN for what is none, or what no calendar has. A
 * time without a zone is none: it would be another one on each machine.
 */
export function timeMsOf(text: string): number {
  const local = TIME.exec(text)?.[1]?.toUpperCase();
  return local !== undefined && isOfCalendar(local) ? Date.parse(text.toUpperCase()) : Number.NaN;
}

/** The same of a time of RFC 3339, or of the beginning in UTC of a day, `2026-11-01`. */
export function momentMsOf(text: string): number {
  return timeMsOf(DATE.test(text) ? `${text}T00:00:00Z` : text);
}
