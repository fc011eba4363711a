/** When rounds begin and time out. */
import { STEP, type TimeoutStep } from "./consensus-state.js";

/** Time limits of a round's steps; each grows with the round. */
export interface ConsensusTimeouts {
  readonly proposeMs: number;
  readonly proposeDeltaMs: number;
  readonly prevoteMs: number;
  readonly prevoteDeltaMs: number;
  readonly precommitMs: number;
  readonly precommitDeltaMs: number;
}

/** Limit of a step in a round, milliseconds. */
export function timeoutMs(
  timeouts: ConsensusTimeouts,
  step: Exclude<TimeoutStep, typeof STEP.newHeight>,
  round: number,
): number {
  switch (step) {
    case STEP.propose:
      return timeouts.proposeMs + round * timeouts.proposeDeltaMs;
    case STEP.prevoteWait:
      return timeouts.prevoteMs + round * timeouts.prevoteDeltaMs;
    default:
      return timeouts.precommitMs + round * timeouts.precommitDeltaMs;
  }
}

/**
 * When the next height begins: at the tick after the last one, on a grid of the wall clock that all
 * validators share, so that the mean interval does not drift with the time that blocks take. Ticks
 * that were missed (a long round, a suspended machine) are skipped, not caught up.
 * @param lastStartMs tick at which the last height began; undefined for the first
 * @returns Unix milliseconds; at most one interval ahead, and in the past when it is due
 */
export function nextStartMs(
  lastStartMs: number | undefined,
  nowMs: number,
  intervalMs: number,
): number {
  const lastTick = Math.floor(nowMs / intervalMs) * intervalMs;
  if (lastStartMs === undefined) return lastTick + intervalMs;
  const next = lastStartMs + intervalMs;
  if (next < lastTick) return lastTick;
  // A clock that was set back must not stop the chain.
  return Math.min(next, lastTick + intervalMs);
}
