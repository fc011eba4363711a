/** Shares and times as events of staking have them. */
import { SHARES_PER_ATOKEN } from "./validator-record.js";

/** Shares as the SDK writes them: 18 decimals. */
export function sharesText(shares: bigint): string {
  return `${shares / SHARES_PER_ATOKEN}.${(shares % SHARES_PER_ATOKEN).toString().padStart(18, "0")}`;
}

/** The last time that has a text; in calls the block may have a time beyond it. */
const LAST_TIME_MS = Date.UTC(9999, 11, 31, 23, 59, 59);

/** A time as the SDK's events have it: RFC 3339, whole seconds. */
export function timeText(timeMs: number): string {
  return `${new Date(Math.min(timeMs, LAST_TIME_MS)).toISOString().slice(0, 19)}Z`;
}
