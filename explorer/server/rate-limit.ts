/** How much one client may ask for, and how much is asked for at once: in bounded memory. */
import { LRUCache } from "lru-cache";
import type { Clock } from "../../runtime/process/clock.js";
import { ExplorerError } from "../errors.js";

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
      throw new ExplorerError("RATE_LIMITED", "too many pages for one client", {
        retriable: true,
        details: { retryAfterSeconds },
      });
    }
    bucket.tokens -= needed;
  }
}

/** Requests that wait for their turn; more are refused at once. */
const MAX_WAITING = 256;

/** Longest wait for a turn. */
const MAX_WAIT_MS = 10_000;

/** At most so many pieces of work at once; the rest waits for its turn, in order, for a while. */
export class Turns {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly most: number) {}

  /** Runs work in its turn. @throws BUSY; the signal's reason */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (this.running >= this.most) await this.turn(signal);
    else this.running += 1;
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      // The turn is passed on: nobody can come in between.
      if (next === undefined) this.running -= 1;
      else next();
    }
  }

  private turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.waiting.length >= MAX_WAITING) throw busy();
    return new Promise((resolve, reject) => {
      const leave = (error: unknown) => {
        const at = this.waiting.indexOf(enter);
        if (at >= 0) this.waiting.splice(at, 1);
        done();
        reject(error);
      };
      const onAbort = () => leave(signal.reason);
      const timer = setTimeout(() => leave(busy()), MAX_WAIT_MS);
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
      };
      const enter = () => {
        done();
        resolve();
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.waiting.push(enter);
    });
  }
}

function busy(): ExplorerError {
  return new ExplorerError("BUSY", "too many pages are made at once", {
    retriable: true,
    details: { retryAfterSeconds: 2 },
  });
}
