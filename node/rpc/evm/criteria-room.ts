/** What log filters of clients may hold together: their addresses and topics stay in memory. */
import { sharedPlaces } from "../shared-places.js";
import { RpcFault } from "./errors.js";
import type { LogCriteria } from "./log-filter.js";

/**
 * Addresses and topics of all installed filters, and of all subscriptions: some 50 MB. One request
 * may bring 6,000 of them, and both could stay ten thousandfold.
 */
const MAX_ALTERNATIVES = 200_000;

/** Counts the addresses and topics of the criteria that are kept. */
export class CriteriaRoom {
  private readonly places = sharedPlaces(MAX_ALTERNATIVES);

  /**
   * Takes room for what these criteria hold. @returns gives it back
   * @param client as of `CallContext`
   * @throws LIMIT_EXCEEDED
   */
  take(criteria: LogCriteria, client: string): () => void {
    const size = sizeOf(criteria);
    if (!this.places.hasRoom(client, size)) {
      throw new RpcFault("LIMIT_EXCEEDED", "too many addresses and topics are kept in filters");
    }
    return this.places.take(client, size);
  }
}

function sizeOf({ addresses, topics }: LogCriteria): number {
  return topics.reduce((size, set) => size + (set?.size ?? 0), addresses?.size ?? 0);
}
