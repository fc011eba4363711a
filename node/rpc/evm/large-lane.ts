/**
 * The way for answers that have become large, of single calls and of batches: a few at a time are
 * made up, so that what hundreds of clients ask for at once is not in memory at once.
 */

import { Turns } from "../../../runtime/turns/turns.js";
import { RpcFault } from "./errors.js";

/** An answer that has become larger than this goes on when few others do. */
export const LARGE_BYTES = 1024 * 1024;

/** Large answers that are made up at the same time. */
const MAX_RUNNING = 2;

/** Answers that may wait, each with `LARGE_BYTES` or some more of its own: a quarter of a gigabyte. */
const MAX_WAITING = 256;

/** What the others are told. */
export const TOO_MANY_LARGE = "too many large answers are asked for at once";

/** One lane for all clients of an API. */
export class LargeLane extends Turns {
  constructor() {
    super({
      maxRunning: MAX_RUNNING,
      maxWaiting: MAX_WAITING,
      full: () => new RpcFault("LIMIT_EXCEEDED", TOO_MANY_LARGE),
    });
  }
}

/** A request's place among those with large answers, until its answer is handed over. */
export class LargePlace {
  private waiting: Promise<void> | undefined;

  /**
   * @param client whose turn it is
   * @param afterReply runs what it is given when the answer has been handed over
   */
  constructor(
    private readonly lane: LargeLane,
    private readonly client: string,
    private readonly afterReply: (callback: () => void) => void,
  ) {}

  /**
   * Waits for the place; once for all calls of a batch, which have it one after the other (`BatchCall`).
   * @throws the signal's reason where the request's time is over before, and as `LargeLane.enter`
   */
  taken(signal: AbortSignal): Promise<void> {
    this.waiting ??= this.lane.enter(signal, this.client).then((leave) => this.afterReply(leave));
    return this.waiting;
  }
}
