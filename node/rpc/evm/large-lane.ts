/**
 * The way for answers that have become large, of single calls and of batches: a few at a time are
 * made up, so that what hundreds of clients ask for at once is not in memory at once.
 */

import { RpcFault } from "./errors.js";

/** An answer that has become larger than this goes on when few others do. */
export const LARGE_BYTES = 1024 * 1024;

/** Large answers that are made up at the same time. */
const MAX_RUNNING = 2;

/** Answers that may wait, each with `LARGE_BYTES` or some more of its own: a quarter of a gigabyte. */
const MAX_WAITING = 256;

/** One lane for all clients of an API. */
export class LargeLane {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  /** Answers that are under way or wait, for tests and metrics. */
  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.running, waiting: this.waiting.length };
  }

  /**
   * Waits for a place, in order. @returns gives the place back; to be called once
   * @throws the signal's reason; LIMIT_EXCEEDED where too many wait already
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.running < MAX_RUNNING) this.running += 1;
    else if (this.waiting.length < MAX_WAITING) await this.turn(signal);
    else throw new RpcFault("LIMIT_EXCEEDED", "too many large answers are asked for at once");
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

/** A request's place among those with large answers, until its answer is handed over. */
export class LargePlace {
  private waiting: Promise<void> | undefined;

  /** @param afterReply runs what it is given when the answer has been handed over */
  constructor(
    private readonly lane: LargeLane,
    private readonly afterReply: (callback: () => void) => void,
  ) {}

  /**
   * Waits for the place; once for all calls of a batch.
   * @throws the signal's reason where the request's time is over before
   */
  taken(signal: AbortSignal): Promise<void> {
    this.waiting ??= this.lane.enter(signal).then((leave) => this.afterReply(leave));
    return this.waiting;
  }
}
