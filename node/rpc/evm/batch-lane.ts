/**
 * The way for batches whose answers have become large: a few at a time are made up, so that what
 * hundreds of clients ask for at once is not in memory at once.
 */

/** Large answers that are made up at the same time. */
const MAX_RUNNING = 2;

/** One lane for all clients of an API. */
export class BatchLane {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  /** Batches that are under way or wait, for tests and metrics. */
  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.running, waiting: this.waiting.length };
  }

  /**
   * Waits for a place, in order. @returns gives the place back; to be called once
   * @throws the signal's reason
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.running < MAX_RUNNING) this.running += 1;
    else await this.turn(signal);
    return () => this.leave();
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
    // The place goes straight to the next in line, so that nobody overtakes it.
    const next = this.waiting.shift();
    if (next === undefined) this.running -= 1;
    else next();
  }
}
