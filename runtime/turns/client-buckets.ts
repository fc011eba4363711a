/** How much each client may ask for: a bucket of tokens for each, filled steadily, in bounded memory. */
import { LRUCache } from "lru-cache";
import type { Clock } from "../process/clock.js";

/** Clients that are remembered; whoever is forgotten begins with a full bucket. */
const MAX_CLIENTS = 10_000;

/** How buckets are filled; both are more than 0. */
export interface BucketRate {
  readonly perSecond: number;
  /** What a full bucket holds, which may be asked for at once. */
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/** The buckets of all clients. */
export class ClientBuckets {
  private readonly buckets = new LRUCache<string, Bucket>({ max: MAX_CLIENTS });

  constructor(
    private readonly rate: BucketRate,
    private readonly clock: Clock,
  ) {}

  /**
   * Takes `cost` from a client's bucket where it holds as much; of what costs more than a bucket holds, all.
   * @param client who it is for limits, as `clientOf` says
   * @returns 0, or seconds until the bucket holds enough where it does not: nothing is taken then
   */
  take(client: string, cost: number): number {
    const { perSecond, burst } = this.rate;
    const nowMs = this.clock.monotonicMs();
    const { tokens: former, atMs } = this.buckets.get(client) ?? { tokens: burst, atMs: nowMs };
    const tokens = Math.min(burst, former + ((nowMs - atMs) / 1_000) * perSecond);
    const needed = Math.min(cost, burst);
    const isEnough = tokens >= needed;
    this.buckets.set(client, { tokens: isEnough ? tokens - needed : tokens, atMs: nowMs });
    return isEnough ? 0 : (needed - tokens) / perSecond;
  }
}
