/** A clock that tests move. */
import type { Clock } from "../../../runtime/process/clock.js";

/** Both clocks show the same time, unless that of the day is set. */
export class TestClock implements Clock {
  /** By how much the clock of the day is put forward. */
  setByMs = 0;

  constructor(public timeMs = 1_000_000) {}

  nowMs(): number {
    return this.timeMs + this.setByMs;
  }

  monotonicMs(): number {
    return this.timeMs;
  }
}
