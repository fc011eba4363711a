/** How often one client may ask: a bucket of requests for each of them, filled at a steady rate. */
import { LRUCache } from "lru-cache";
import { clientOf, isLoopback } from "../../runtime/turns/client-address.js";
import type { Clock } from "../../runtime/process/clock.js";

/** Clients that are remembered; who was forgotten begins with a full bucket. */
const MAX_CLIENTS = 10_000;

/** A client may ask for so many seconds' worth at once. */
const BURST_SECONDS = 2;

/** What a client of REST or gRPC is told that asks more often than it may. */
export const TOO_OFTEN = "too many requests: ask less often";

interface Bucket {
  tokens: number;
  atMs: number;
}

/** Counts requests by client. */
export class RateLimit {
  private readonly buckets = new LRUCache<string, Bucket>({ max: MAX_CLIENTS });

  /**
   * @param perSecond requests of one client; 0 sets no bound
   * @param limitsLoopback false leaves this machine out, and who is not told apart: the kit's own parts, or
   *   a proxy that speaks for many
   */
  constructor(
    private readonly perSecond: number,
    private readonly clock: Clock,
    private readonly limitsLoopback = true,
  ) {}

  /**
   * Takes one request that comes from an address, or from the client of that name; false when its client has
   * to wait.
   */
  take(remoteAddress: string): boolean {
    if (this.perSecond === 0) return true;
    const client = clientOf(remoteAddress);
    if (!this.limitsLoopback && (client === "" || isLoopback(client))) return true;
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

/** What a client of the EVM's or the consensus RPC is told; not by words that tell of too much at once. */
export const SEARCHED_TOO_OFTEN = "limit exceeded: ask less often";

/** How often one client of another machine may search logs or transactions, or subscribe; 0 for no bound. */
export function searchRate(perSecond: number, clock: Clock): RateLimit {
  return new RateLimit(perSecond, clock, false);
}
