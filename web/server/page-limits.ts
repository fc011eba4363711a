/** How many pages one client may ask for, and how many are made at once. */
import type { Clock } from "../../runtime/process/clock.js";
import { ClientBuckets } from "../../runtime/turns/client-buckets.js";
import { Turns } from "../../runtime/turns/turns.js";
import { PageError } from "../errors.js";

/** Each client's pages in a minute: all of them at once, and then as they come back. */
export class PageRate {
  private readonly buckets: ClientBuckets;

  constructor(perMinute: number, clock: Clock) {
    this.buckets = new ClientBuckets({ perSecond: perMinute / 60, burst: perMinute }, clock);
  }

  /**
   * Takes `cost` from a client's share.
   * @throws RATE_LIMITED with `details.retryAfterSeconds`
   */
  take(client: string, cost: number): void {
    const waitSeconds = this.buckets.take(client, cost);
    if (waitSeconds === 0) return;
    throw new PageError("RATE_LIMITED", "too many pages for one client", {
      retriable: true,
      details: { retryAfterSeconds: Math.ceil(waitSeconds) },
    });
  }
}

/** Requests that wait for their turn; of one more the last in the longest line is refused. */
const MAX_WAITING = 256;

/** Longest wait for a turn. */
const MAX_WAIT_MS = 10_000;

/**
 * Turns of a server of pages, which are waited for in bounded number and time; else BUSY.
 * @param most pieces of work at once
 * @param share of all turns, the part that one may have at a time who is told apart
 */
export function createPageTurns(most: number, share = 1): Turns {
  return new Turns({
    maxRunning: most,
    maxWaiting: MAX_WAITING,
    maxWaitMs: MAX_WAIT_MS,
    full: busy,
    share,
  });
}

function busy(): PageError {
  return new PageError("BUSY", "too many pages are made at once", {
    retriable: true,
    details: { retryAfterSeconds: 2 },
  });
}
