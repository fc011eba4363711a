/** A clock that tests move. */
import type { Clock } from "../../../runtime/process/clock.js";

/** Both clocks show the same time. */
export class TestClock implements Clock {
  constructor(public timeMs = 1_000_000) {}

  nowMs(): number {
    return this.timeMs;
  }

  monotonicMs(): number {
    return this.timeMs;
  }
}
