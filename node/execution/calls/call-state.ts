/** The state that calls work on: locked coins are locked as they would be in a block. */
import { VestingLocks } from "../../modules/vesting.js";
import { JournaledState } from "../../state/journaled-state.js";
import type { StateReader } from "../../store/state-reader.js";
import type { BlockContext } from "../message.js";
import type { WorkerSettings } from "./call-protocol.js";

/** An overlay over a state, in the block that its calls see. */
export function stateOf(
  reader: StateReader,
  { native, timestampSeconds }: BlockContext,
  { locks }: Pick<WorkerSettings, "locks">,
): JournaledState {
  const state = new JournaledState(reader);
  const timeMs = native?.timeMs ?? timestampSeconds * 1_000;
  if (locks !== undefined) state.locks = new VestingLocks(state, locks, timeMs);
  return state;
}
