/** How often one client may ask: a bucket of requests for each of them, filled at a steady rate. */
import { LRUCache } from "lru-cache";
import { clientOf } from "../../runtime/turns/client-address.js";
import type { Clock } from "../../runtime/process/clock.js";

/** Clients that are remembered; who was forgotten begins with a full bucket. */
const MAX_CLIENTS = 10_000;

/** A client may ask for so many seconds' worth at once. */
const BURST_SECONDS = 2;

/** What a client is told that asks more often than it may. */
export const TOO_OFTEN = "too many requests: ask less often";

interface Bucket {
  tokens: number;
  atMs: number;
}

/** Counts requests by client. */
export class RateLimit {
  private readonly buckets = new LRUCache<string, Bucket>({ max: MAX_CLIENTS });

  /** @param perSecond requests of one client; 0 sets no bound */
  constructor(
    private readonly perSecond: number,
    private readonly clock: Clock,
  ) {}

  /** Takes one request that comes from an address; false when its client has to wait. */
  take(remoteAddress: string): boolean {
    if (this.perSecond === 0) return true;
    const client = clientOf(remoteAddress);
    const most = this.perSecond * BURST_SECONDS;
    const nowMs = this.clock.monotonicMs();
    const known = this.buckets.get(client) ?? { tokens: most, atMs: nowMs };
    const grown = ((nowMs - known.atMs) / 1_000) * this.perSecond;
    const tokens = Math.min(most, known.tokens + grown);
    const isAllowed = tokens >= 1;
    this.buckets.set(client, { tokens: isAllowed ? tokens - 1 : tokens, atMs: nowMs });
    return isAllowed;
  }
}
