/** What the age of the newest block says: the sign of a live chain that cannot deceive. */

/** All is well; somebody should look; something is wrong. */
export type Verdict = "pass" | "warn" | "fail";

/** Older than five blocks of 2 s: blocks are late. */
export const LATE_BLOCK_SECONDS = 10;

/** Older than fifteen blocks of 2 s: the chain stands still. */
const STALLED_BLOCK_SECONDS = 30;

/**
 * How long ago a block was, by its own time; below zero where that is ahead of this machine's clock. Such an
 * age is never taken for 0: a chain that stands still would look well until the clock has come up to it.
 */
export function blockAgeSeconds(blockTimeMs: number, nowMs: number): number {
  return (nowMs - blockTimeMs) / 1_000;
}

/** An age in words: "95 s old", "95 s ahead of this machine's clock". */
export function blockAgeText(ageSeconds: number): string {
  const seconds = Math.round(ageSeconds);
  return seconds < 0 ? `${-seconds} s ahead of this machine's clock` : `${seconds} s old`;
}

/** Whether an age is further from the clock than it may be, to either side. */
export function isBlockAgeBeyond(ageSeconds: number, limitSeconds: number): boolean {
  return Math.abs(ageSeconds) > limitSeconds;
}

/**
 * Why a node cannot be called well that answers and has caught up: its newest block is too old, or so far
 * ahead of the clock that its age says nothing; "" where it is neither.
 */
export function stallReason(ageSeconds: number): string {
  if (blockAgeVerdict(ageSeconds) !== "fail") return "";
  const why =
    ageSeconds < 0
      ? "one of the two is wrong, or the chain has not begun; whether it stands still cannot be told"
      : "the chain stands still, or this node does";
  return `its newest block is ${blockAgeText(ageSeconds)}: ${why}`;
}

/** Judges an age; undefined where no block can be had. */
export function blockAgeVerdict(ageSeconds: number | undefined): Verdict {
  if (ageSeconds === undefined || isBlockAgeBeyond(ageSeconds, STALLED_BLOCK_SECONDS))
    return "fail";
  return isBlockAgeBeyond(ageSeconds, LATE_BLOCK_SECONDS) ? "warn" : "pass";
}
