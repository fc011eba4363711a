/** How much one client may ask for, and how much is asked for at once: in bounded memory. */
import { LRUCache } from "lru-cache";
import type { Clock } from "../../runtime/process/clock.js";
import { joinSignals } from "../../runtime/process/task.js";
import { Turns as WaitedTurns } from "../../runtime/turns/turns.js";
import { PageError } from "../errors.js";

/** Clients that are remembered; whoever is forgotten starts anew. */
const MAX_CLIENTS = 10_000;

interface Bucket {
  tokens: number;
  atMs: number;
}

/** A token bucket for each client: a minute's share at once, filled up steadily. */
export class RateLimit {
  private readonly buckets = new LRUCache<string, Bucket>({ max: MAX_CLIENTS });

  constructor(
    private readonly perMinute: number,
    private readonly clock: Clock,
  ) {}

  /**
   * Takes `cost` from a client's share.
   * @throws RATE_LIMITED with `details.retryAfterSeconds`
   */
  take(client: string, cost: number): void {
    const nowMs = this.clock.monotonicMs();
    const bucket = this.buckets.get(client) ?? { tokens: this.perMinute, atMs: nowMs };
    const perMs = this.perMinute / 60_000;
    bucket.tokens = Math.min(this.perMinute, bucket.tokens + (nowMs - bucket.atMs) * perMs);
    bucket.atMs = nowMs;
    this.buckets.set(client, bucket);
    const needed = Math.min(cost, this.perMinute);
    if (bucket.tokens < needed) {
      const retryAfterSeconds = Math.ceil((needed - bucket.tokens) / perMs / 1_000);
      throw new PageError("RATE_LIMITED", "too many pages for one client", {
        retriable: true,
        details: { retryAfterSeconds },
      });
    }
    bucket.tokens -= needed;
  }
}

/** Requests that wait for their turn; of one more the last in the longest line is refused. */
const MAX_WAITING = 256;

/** Longest wait for a turn. */
const MAX_WAIT_MS = 10_000;

/** Whose work it is, and how long it may wait. */
export interface TurnOptions {
  /** Each has a line of its own, and they take turns; default one line for all. */
  readonly who?: string;
  readonly maxWaitMs?: number;
}

/** At most so many pieces of work at once; the rest waits for its turn, in order, for a while. */
export class Turns {
  private readonly turns: WaitedTurns;

  /** @param share of all turns, the part that one may have at a time who is told apart */
  constructor(most: number, share = 1) {
    this.turns = new WaitedTurns({
      maxRunning: most,
      maxWaiting: MAX_WAITING,
      full: busy,
      share,
    });
  }

  /** Runs work in its turn. @throws BUSY; the signal's reason */
  async run<T>(
    signal: AbortSignal,
    work: () => Promise<T>,
    { who, maxWaitMs = MAX_WAIT_MS }: TurnOptions = {},
  ): Promise<T> {
    const waiting = joinSignals([signal]);
    const timer = setTimeout(() => waiting.abort(busy()), maxWaitMs);
    let leave: () => void;
    try {
      leave = await this.turns.enter(waiting.signal, who);
    } finally {
      clearTimeout(timer);
      waiting.release();
    }
    try {
      return await work();
    } finally {
      leave();
    }
  }
}

function busy(): PageError {
  return new PageError("BUSY", "too many pages are made at once", {
    retriable: true,
    details: { retryAfterSeconds: 2 },
  });
}
