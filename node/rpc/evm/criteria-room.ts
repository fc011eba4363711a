/** What log filters of clients may hold together: their addresses and topics stay in memory. */
import { RpcFault } from "./errors.js";
import type { LogCriteria } from "./log-filter.js";

/**
 * Addresses and topics of all installed filters, and of all subscriptions: some 50 MB. One request
 * may bring 6,000 of them, and both could stay ten thousandfold.
 */
const MAX_ALTERNATIVES = 200_000;

/** Counts the addresses and topics of the criteria that are kept. */
export class CriteriaRoom {
  private taken = 0;

  /** Takes room for what these criteria hold. Throws LIMIT_EXCEEDED. */
  take(criteria: LogCriteria): void {
    const size = sizeOf(criteria);
    if (this.taken + size > MAX_ALTERNATIVES) {
      throw new RpcFault("LIMIT_EXCEEDED", "too many addresses and topics are kept in filters");
    }
    this.taken += size;
  }

  /** Gives back the room of criteria that are kept no more. */
  give(criteria: LogCriteria): void {
    this.taken -= sizeOf(criteria);
  }
}

function sizeOf({ addresses, topics }: LogCriteria): number {
  return topics.reduce((size, set) => size + (set?.size ?? 0), addresses?.size ?? 0);
}
