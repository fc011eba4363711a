/**
 * The time of one round of questions to contracts: no block is indexed meanwhile, or others wait for theirs,
 * and what contracts do with a question takes as long as they like.
 */
import type { Clock } from "../../runtime/process/clock.js";

/** Time of a round, beside one exchange that is under way at its end. */
const ROUND_MS = 2_000;

/** A round that begins when it is made. */
export class RoundTime {
  private readonly endMs: number;

  constructor(private readonly clock: Pick<Clock, "monotonicMs">) {
    this.endMs = clock.monotonicMs() + ROUND_MS;
  }

  /** The first, and as many more as there is time for: each comes when the one before it is done. */
  *asFarAsThereIsTime<T>(exchanges: Iterable<T>): Generator<T, void> {
    let isFirst = true;
    for (const exchange of exchanges) {
      if (!isFirst && this.clock.monotonicMs() >= this.endMs) return;
      isFirst = false;
      yield exchange;
    }
  }
}
