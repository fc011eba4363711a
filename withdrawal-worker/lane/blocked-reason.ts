/** Why a lane does not go on, in the words of `/ready` and the log. */
import { type KillSwitchState, stops } from "../../ledger/kill-switch/kill-switch-level.js";
import type { StalledNonce } from "./attempts/way-out.js";
import type { LaneContext } from "./lane-context.js";

/** Requests wait that the day's fees do not cover. */
export const NO_FEES_REASON = "the day's budget of network fees does not cover what waits";

/** The home's copy of the kill switch stops, also where the ledger's does not. */
export function switchReason({ level, reason }: KillSwitchState): string | undefined {
  return stops(level, "stop-sign") ? `kill switch ${level}: ${reason}` : undefined;
}

/** A round that does not end: what it waits for has no time-out of its own, or many. */
export function longRoundReason(
  lastedMs: number,
  { alarmAfterMs }: LaneContext["settings"]["stall"],
): string | undefined {
  if (lastedMs < alarmAfterMs) return undefined;
  return `the present round has not ended for ${Math.floor(lastedMs / 1_000)} s`;
}

/** A nonce that is waited for too long. @param answer the node's last one to its bytes */
export function stallReason(
  { nonce, status, waitedMs }: StalledNonce,
  answer = "nothing sent",
): string {
  const seconds = Math.floor(waitedMs / 1_000);
  return (
    `nonce ${nonce} (${status}) has not been mined for ${seconds} s; ` +
    `the node's last answer: ${answer}`
  );
}
