/**
 * Turns for what clients ask dearly. Anybody may ask, and a question can be made to take its whole
 * time-out: so few of a kind run at once that they leave connections to the node, and turns of the
 * event loop, to others.
 */
import { Turns } from "../../runtime/process/turns.js";
import { SidecarError } from "./errors.js";

/** Of one kind, those that wait for their turn; more are told to come again. */
const MAX_WAITING = 128;

/**
 * The turns of one kind of question.
 * @param what what there is too much of, as its plural: "calls"
 * @returns turns that throw SERVER_BUSY where too many wait
 */
export function createClientTurns(what: string, maxRunning: number): Turns {
  return new Turns({
    maxRunning,
    maxWaiting: MAX_WAITING,
    full: () =>
      new SidecarError("SERVER_BUSY", { reason: `too many ${what} are asked for at once` }),
  });
}
