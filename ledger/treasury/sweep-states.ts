/** How a sweep and its gas stand, as it is stored and as persons type it. */
import { ageSecondsSql } from "../database-clock.js";
import { LedgerError } from "../errors.js";

/** States; the last four are ends. */
export const SWEEP_STATES = [
  "needs-gas",
  "ready",
  "signed",
  "sent",
  "frozen",
  "settled",
  "failed",
  "void",
  "foreign",
] as const;

/** One of `SWEEP_STATES`. */
export type SweepState = (typeof SWEEP_STATES)[number];

/** States of sweeps that go on by themselves; a frozen one waits for a person, or for the watcher. */
export const MOVING_STATES: readonly SweepState[] = SWEEP_STATES.slice(0, 4);

/** Minutes behind its last step after which a sweep that is signed, and not booked, is late. */
export const LATE_MINUTES = 10;

/** SQL: whether a sweep `s` is late. */
export const IS_LATE = `(s.state IN ('signed', 'sent')
  AND ${ageSecondsSql("s.changed_at")} > ${60 * LATE_MINUTES})`;

const TOP_UP_STATES = ["open", "stranded", "arrived", "void"] as const;

/** The gas that a sweep was given; stranded waits for a nonce of a retired wallet. */
export type TopUpState = "none" | (typeof TOP_UP_STATES)[number];

/** A state column or a word of a person; undefined for any other text. */
export function asSweepState(text: string): SweepState | undefined {
  return SWEEP_STATES.find((state) => state === text);
}

/** A state column. @throws CORRUPT_ROW */
export function toSweepState(text: string): SweepState {
  const state = asSweepState(text);
  if (state === undefined) throw new LedgerError("CORRUPT_ROW", "unknown state of a sweep");
  return state;
}

/** State of its newest gas, or nothing. @throws CORRUPT_ROW */
export function toTopUp(text: string | null): TopUpState {
  if (text === null) return "none";
  const state = TOP_UP_STATES.find((one) => one === text);
  if (state !== undefined) return state;
  throw new LedgerError("CORRUPT_ROW", "unknown state of a top-up");
}
