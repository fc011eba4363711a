/** Few searches at once: each reads many blocks, and together they must not starve the node. */
import { busy } from "../errors.js";

/** Searches that run at once; each gives way every few milliseconds. */
const MAX_RUNNING = 2;

/** Searches that wait for their turn; more are told to come back. */
const MAX_WAITING = 100;

/** The way in for all searches of a server. */
export class SearchLane {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  /** Runs the work in its turn. Throws INTERNAL when too many wait already. */
  async run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    if (this.running < MAX_RUNNING) this.running += 1;
    else await this.turn();
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      // The place goes straight to the next in line, so that nobody overtakes it.
      const next = this.waiting.shift();
      if (next === undefined) this.running -= 1;
      else next();
    }
  }

  private turn(): Promise<void> {
    if (this.waiting.length >= MAX_WAITING) throw busy("too many searches at once, try again");
    return new Promise((resolve) => {
      this.waiting.push(resolve);
    });
  }
}
