/** Turns for work that takes much memory: so many at a time, all others in the order they came. */

/** How many there are, and what is thrown where too many wait. */
export interface TurnBounds {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  readonly full: () => Error;
}

/** One line for everybody who wants the same. */
export class Turns {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly bounds: TurnBounds) {}

  /** Those who have a turn or wait for one, for tests and metrics. */
  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.running, waiting: this.waiting.length };
  }

  /**
   * Waits for a turn, in order. @returns gives it back; to be called once
   * @throws the signal's reason; what the bounds say where too many wait already
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const { maxRunning, maxWaiting, full } = this.bounds;
    if (this.running < maxRunning) this.running += 1;
    else if (this.waiting.length < maxWaiting) await this.turn(signal);
    else throw full();
    return () => this.leave();
  }

  /** Runs the work in its turn. @throws as `enter`, and what the work throws */
  async run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const leave = await this.enter(signal);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  private turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        this.waiting.splice(this.waiting.indexOf(begin), 1);
        reject(signal.reason);
      };
      this.waiting.push(begin);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  private leave(): void {
    // The turn goes straight to the next in line, so that nobody overtakes it.
    const next = this.waiting.shift();
    if (next === undefined) this.running -= 1;
    else next();
  }
}
