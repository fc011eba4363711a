/** The machine's clock, which tests put forward: what takes a chain hours is over at once. */
import { type Clock, systemClock } from "../../../runtime/process/clock.js";

/** One for all validators of a network: none of them lives in another time. */
export class ClockAhead implements Clock {
  private aheadMs = 0;

  nowMs(): number {
    return systemClock.nowMs() + this.aheadMs;
  }

  monotonicMs(): number {
    return systemClock.monotonicMs();
  }

  /** Lets so much time pass at once. */
  pass(durationMs: number): void {
    this.aheadMs += durationMs;
  }
}
