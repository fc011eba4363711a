/** Who waits for which transactions: what a block means to them costs one look for each of its own. */
import type { Hash32 } from "../../../../chain/hex.js";
import type { ClientPlaces } from "../../../../runtime/turns/client-places.js";
import { sharedPlaces } from "../../shared-places.js";
import { RpcFault } from "../errors.js";

/** Waiters by transaction hash, within a bound. */
export class WaitingHashes<Waiter> {
  private readonly waiters = new Map<Hash32, Set<Waiter>>();
  private readonly places: ClientPlaces;
  private readonly leaving = new Map<Waiter, () => void>();

  /** @param maxHashes all waiters' together */
  constructor(maxHashes: number) {
    this.places = sharedPlaces(maxHashes);
  }

  /**
   * Enters a waiter, once, for its hashes.
   * @param client who waits, as of `CallContext`
   * @throws LIMIT_EXCEEDED
   */
  add(waiter: Waiter, hashes: ReadonlySet<Hash32>, client: string): void {
    if (!this.places.hasRoom(client, hashes.size)) {
      throw new RpcFault("LIMIT_EXCEEDED", "too many transaction hashes are waited for");
    }
    for (const hash of hashes) {
      const waiters = this.waiters.get(hash) ?? new Set();
      this.waiters.set(hash, waiters);
      waiters.add(waiter);
    }
    this.leaving.set(waiter, this.places.take(client, hashes.size));
  }

  /** Takes a waiter out that was entered with these hashes. */
  remove(waiter: Waiter, hashes: ReadonlySet<Hash32>): void {
    for (const hash of hashes) {
      const waiters = this.waiters.get(hash);
      if (waiters?.delete(waiter) === true && waiters.size === 0) this.waiters.delete(hash);
    }
    this.leaving.get(waiter)?.();
    this.leaving.delete(waiter);
  }

  /** Positions in the list of what each waiter waits for, ascending. */
  found(hashes: readonly Hash32[]): ReadonlyMap<Waiter, number[]> {
    const found = new Map<Waiter, number[]>();
    if (this.waiters.size === 0) return found;
    for (const [index, hash] of hashes.entries()) {
      for (const waiter of this.waiters.get(hash) ?? []) {
        const indices = found.get(waiter) ?? [];
        found.set(waiter, indices);
        indices.push(index);
      }
    }
    return found;
  }
}
