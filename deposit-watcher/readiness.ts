/** Pure: whether the watcher does its work, and if not why; whether it catches up. */
import type { Readiness } from "../runtime/http/http-server.js";
import type { WatcherStatus } from "./watcher.js";

/** How long a round may stand still: longer than node and database take where they answer at all. */
const STANDSTILL_MS = 30_000;

/**
 * `/ready`: halted, not connected, standing still, without a past or behind, each with its reason.
 * @param nowMs of the clock that never goes back
 */
export function readinessOf(status: WatcherStatus, maxLagBlocks: number, nowMs: number): Readiness {
  const { incident, problem, pastProblem } = status;
  if (incident !== undefined) {
    const reason =
      `crediting and signing are halted by incident ${incident.id} (${incident.kind}): ` +
      `${incident.message}; ${incident.remedy}`;
    return { ready: false, reason };
  }
  if (problem !== undefined) return { ready: false, reason: `not connected: ${problem}` };
  const stoodMs = nowMs - (status.progressedAtMs ?? nowMs);
  if (stoodMs >= STANDSTILL_MS) {
    const seconds = Math.floor(stoodMs / 1_000);
    return { ready: false, reason: `the present round has come no further for ${seconds} s` };
  }
  // Before the lag, which passes by itself.
  if (pastProblem !== undefined) {
    const reason = `the past of an address, a wallet or a token is not booked: ${pastProblem}`;
    return { ready: false, reason };
  }
  const lagBlocks = lagOf(status) ?? 0;
  if (lagBlocks <= maxLagBlocks) return { ready: true };
  const why = status.waitsFor === undefined ? "" : `: ${status.waitsFor}`;
  return { ready: false, reason: `behind: ${lagBlocks} blocks below the head${why}` };
}

/** Whether there is more to book than `/ready` allows, or nobody knows yet, and no incident stops it. */
export function isCatchingUp(status: WatcherStatus, maxLagBlocks: number): boolean {
  return status.incident === undefined && (lagOf(status) ?? Infinity) > maxLagBlocks;
}

/** Blocks below the head; undefined before the node was asked. */
function lagOf({ headHeight, cursorHeight }: WatcherStatus): number | undefined {
  return headHeight === undefined ? undefined : headHeight - cursorHeight;
}
