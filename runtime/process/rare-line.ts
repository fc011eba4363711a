/**
 * A line of a log about what others may cause as often as they like: nobody is to fill the disk with it, or
 * bury the other lines.
 */
import type { Clock } from "./clock.js";

/** Time between two lines. */
const INTERVAL_MS = 10_000;

/** Writes at most one line in ten seconds, with the number of times since the last. */
export class RareLine {
  private times = 0;
  private saidAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly clock: Pick<Clock, "monotonicMs">) {}

  /**
   * It has happened.
   * @param say writes the line, with the times since the last one; called at once or not at all
   */
  happened(say: (times: number) => void): void {
    this.times += 1;
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.saidAtMs < INTERVAL_MS) return;
    const { times } = this;
    [this.times, this.saidAtMs] = [0, nowMs];
    say(times);
  }
}
