/**
 * A database whose clock went back, by a step of its host's or as a standby took over whose own is late: what
 * waits is due by the clock of before, and nothing would be paid until that has been caught up with.
 */
import type { LaneContext } from "../lane-context.js";
import { LONGEST_WAIT_DELAYS } from "./put-off.js";

/** Time between two looks at what is due. */
const LOOK_MS = 60_000;

/** Requests that one look makes due. */
const REQUESTS_PER_LOOK = 1_000;

/** The looks of one lane. */
export class LateClock {
  #nextMs = Number.NEGATIVE_INFINITY;

  /**
   * Now and then makes due what waits for longer than anything is ever put off for, and says so.
   * @throws the database's faults
   */
  async attend({ clock, ledger, settings, log }: LaneContext): Promise<void> {
    if (clock.monotonicMs() < this.#nextMs) return;
    const beyondMs = LONGEST_WAIT_DELAYS * settings.retryDelayMs;
    const count = await ledger.drawBack({ beyondMs, limit: REQUESTS_PER_LOOK });
    if (count > 0) log.warn({ count }, "the database's clock went back: withdrawals are due again");
    // More may be waiting: behind this batch then.
    if (count < REQUESTS_PER_LOOK) this.#nextMs = clock.monotonicMs() + LOOK_MS;
  }
}
