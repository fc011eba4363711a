/** What the age of the newest block says: the sign of a live chain that cannot deceive. */
import { BLOCK_INTERVAL_BOUNDS_MS, BLOCK_INTERVAL_MS } from "../networks.js";

/** All is well; somebody should look; something is wrong. */
export type Verdict = "pass" | "warn" | "fail";

/** Older than so many intervals: blocks are late. One or two are usual: the time is that of older votes. */
const LATE_INTERVALS = 5;

/** Older than so many intervals: the chain stands still. */
const STALLED_INTERVALS = 15;

/**
 * Time between blocks as the last ones tell it, ms: the shorter one of two, since a chain that stood
 * still has a long one behind it.
 * @param timesSeconds of the newest blocks, the newest first
 * @returns undefined of fewer than two
 */
export function intervalOfBlocks(timesSeconds: readonly number[]): number | undefined {
  const gapsMs = timesSeconds
    .slice(1, 3)
    .map((time, index) => ((timesSeconds[index] ?? time) - time) * 1_000);
  return gapsMs.length === 0 ? undefined : Math.min(...gapsMs, BLOCK_INTERVAL_BOUNDS_MS.max);
}

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

/** How old a newest block gets before the chain stands still, ms; `intervalMs` as in `blockAgeVerdict`. */
export function stalledAfterMs(intervalMs?: number): number {
  return STALLED_INTERVALS * judgedInterval(intervalMs);
}

/**
 * Why a node cannot be called well that answers and has caught up: its newest block is too old, or so far
 * ahead of the clock that its age says nothing; "" where it is neither. `intervalMs` as in `blockAgeVerdict`.
 */
export function stallReason(ageSeconds: number, intervalMs?: number): string {
  if (blockAgeVerdict(ageSeconds, intervalMs) !== "fail") return "";
  const why =
    ageSeconds < 0
      ? "one of the two is wrong, or the chain has not begun; whether it stands still cannot be told"
      : "the chain stands still, or this node does";
  return `its newest block is ${blockAgeText(ageSeconds)}: ${why}`;
}

/**
 * Judges an age.
 * @param ageSeconds undefined where no block can be had
 * @param intervalMs time between blocks of the chain; where it is not known, or shorter, 2 s count
 */
export function blockAgeVerdict(ageSeconds: number | undefined, intervalMs?: number): Verdict {
  const stalledSeconds = stalledAfterMs(intervalMs) / 1_000;
  if (ageSeconds === undefined || isBlockAgeBeyond(ageSeconds, stalledSeconds)) return "fail";
  const lateSeconds = (LATE_INTERVALS * judgedInterval(intervalMs)) / 1_000;
  return isBlockAgeBeyond(ageSeconds, lateSeconds) ? "warn" : "pass";
}

function judgedInterval(intervalMs = BLOCK_INTERVAL_MS): number {
  return Math.max(BLOCK_INTERVAL_MS, intervalMs);
}
