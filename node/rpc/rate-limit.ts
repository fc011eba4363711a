/** How often one client may ask: a bucket of requests for each of them, filled at a steady rate. */
import type { Clock } from "../../runtime/process/clock.js";
import { clientOf, isLoopback } from "../../runtime/turns/client-address.js";
import { ClientBuckets } from "../../runtime/turns/client-buckets.js";

/** A client may ask for so many seconds' worth at once. */
const BURST_SECONDS = 2;

/** What a client of REST or gRPC is told that asks more often than it may. */
export const TOO_OFTEN = "too many requests: ask less often";

/** Counts requests by client. */
export class RateLimit {
  private readonly buckets: ClientBuckets;

  /**
   * @param perSecond requests of one client; 0 sets no bound
   * @param limitsLoopback false leaves this machine out, and who is not told apart: the kit's own parts, or
   *   a proxy that speaks for many
   */
  constructor(
    private readonly perSecond: number,
    clock: Clock,
    private readonly limitsLoopback = true,
  ) {
    this.buckets = new ClientBuckets({ perSecond, burst: perSecond * BURST_SECONDS }, clock);
  }

  /**
   * Takes one request that comes from an address, or from the client of that name; false when its client has
   * to wait.
   */
  take(remoteAddress: string): boolean {
    if (this.perSecond === 0) return true;
    const client = clientOf(remoteAddress);
    if (!this.limitsLoopback && (client === "" || isLoopback(client))) return true;
    return this.buckets.take(client, 1) === 0;
  }
}

/** What a client of the EVM's or the consensus RPC is told; not by words that tell of too much at once. */
export const SEARCHED_TOO_OFTEN = "limit exceeded: ask less often";

/** How often one client of another machine may search logs or transactions, or subscribe; 0 for no bound. */
export function searchRate(perSecond: number, clock: Clock): RateLimit {
  return new RateLimit(perSecond, clock, false);
}
