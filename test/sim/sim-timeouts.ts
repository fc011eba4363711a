/** Timeouts of the simulated validators. */
import { STEP, type TimeoutStep } from "../../node/consensus/machine/consensus-state.js";

/** Of round 0. */
export const TIMEOUT_MS: Readonly<Record<TimeoutStep, number>> = {
  [STEP.newHeight]: 50,
  [STEP.propose]: 300,
  [STEP.prevoteWait]: 100,
  [STEP.precommitWait]: 100,
};

/** More of each for every round. */
export const TIMEOUT_STEP_MS = 60;
