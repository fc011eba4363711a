/** Pure: whether the watcher does its work, and if not why. */
import type { Readiness } from "../runtime/http/http-server.js";
import type { WatcherStatus } from "./watcher.js";

/** `/ready`: halted, not connected or behind, each with its reason. */
export function readinessOf(status: WatcherStatus, maxLagBlocks: number): Readiness {
  const { incident, problem, headHeight, cursorHeight } = status;
  if (incident !== undefined) {
    const reason =
      `crediting and signing are halted by incident ${incident.id} (${incident.kind}): ` +
      `${incident.message}; ${incident.remedy}`;
    return { ready: false, reason };
  }
  if (problem !== undefined) return { ready: false, reason: `not connected: ${problem}` };
  const lagBlocks = (headHeight ?? 0) - cursorHeight;
  return lagBlocks > maxLagBlocks
    ? { ready: false, reason: `behind: ${lagBlocks} blocks below the head` }
    : { ready: true };
}
