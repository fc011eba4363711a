/** Times as events of staking have them. */
/** The last time that has a text; in calls the block may have a time beyond it. */
const LAST_TIME_MS = Date.UTC(9999, 11, 31, 23, 59, 59);

/** A time as the SDK's events have it: RFC 3339, whole seconds. */
export function timeText(timeMs: number): string {
  return `${new Date(Math.min(timeMs, LAST_TIME_MS)).toISOString().slice(0, 19)}Z`;
}
