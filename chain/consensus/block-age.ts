/** What the age of the newest block says: the sign of a live chain that cannot deceive. */

/** All is well; somebody should look; something is wrong. */
export type Verdict = "pass" | "warn" | "fail";

/** Older than five blocks of 2 s: blocks are late. */
export const LATE_BLOCK_SECONDS = 10;

/** Older than fifteen blocks of 2 s: the chain stands still. */
const STALLED_BLOCK_SECONDS = 30;

/**
 * Why a node cannot be called well that answers and has caught up: its newest block is too old; "" where
 * it is not.
 */
export function stallReason(ageSeconds: number): string {
  if (blockAgeVerdict(ageSeconds) !== "fail") return "";
  const age = `its newest block is ${Math.round(ageSeconds)} s old`;
  return `${age}: the chain stands still, or this node does`;
}

/** Judges an age; undefined where no block can be had. */
export function blockAgeVerdict(ageSeconds: number | undefined): Verdict {
  if (ageSeconds === undefined || ageSeconds > STALLED_BLOCK_SECONDS) return "fail";
  return ageSeconds > LATE_BLOCK_SECONDS ? "warn" : "pass";
}
