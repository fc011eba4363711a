/**
 * One sender's transactions as the pool shows them: the executable ones, whose nonces follow the
 * account's without a gap, then the queued ones. Changed only by committing a `SenderDraft`.
 */
import type { Address } from "../../chain/address.js";
import type { Atoken } from "../../chain/units.js";
import type { PoolEntry } from "./pool-entry.js";

/** Which nonces of a sender are executable, and what those can cost. */
export interface SenderBounds {
  /** Next nonce of the account at the head. */
  readonly firstNonce: bigint;
  /** First nonce that is not executable; >= firstNonce. */
  readonly pendingEnd: bigint;
  /** Sum of the costs of the executable transactions. */
  readonly pendingCostAtoken: Atoken;
}

/** Transactions of one sender by nonce. */
export class SenderQueue {
  private readonly entries = new Map<bigint, PoolEntry>();
  private current: SenderBounds;

  constructor(
    readonly address: Address,
    firstNonce: bigint,
  ) {
    this.current = { firstNonce, pendingEnd: firstNonce, pendingCostAtoken: 0n };
  }

  get bounds(): SenderBounds {
    return this.current;
  }

  /** Executable and queued together. */
  get count(): number {
    return this.entries.size;
  }

  get(nonce: bigint): PoolEntry | undefined {
    return this.entries.get(nonce);
  }

  /** The transaction with this nonce if it is executable. */
  executable(nonce: bigint): PoolEntry | undefined {
    return nonce < this.current.pendingEnd ? this.entries.get(nonce) : undefined;
  }

  /** Executable transactions in nonce order. */
  pending(): PoolEntry[] {
    const list: PoolEntry[] = [];
    for (let nonce = this.current.firstNonce; nonce < this.current.pendingEnd; nonce++) {
      const entry = this.entries.get(nonce);
      if (entry !== undefined) list.push(entry);
    }
    return list;
  }

  /** Queued transactions in nonce order. */
  queued(): PoolEntry[] {
    const list: PoolEntry[] = [];
    for (const entry of this.entries.values()) {
      if (entry.tx.nonce >= this.current.pendingEnd) list.push(entry);
    }
    return list.toSorted((left, right) => (left.tx.nonce < right.tx.nonce ? -1 : 1));
  }

  /** All entries, in no particular order. */
  all(): Iterable<PoolEntry> {
    return this.entries.values();
  }

  /** Takes over a draft's outcome: undefined removes the nonce. */
  apply(changes: ReadonlyMap<bigint, PoolEntry | undefined>, bounds: SenderBounds): void {
    for (const [nonce, entry] of changes) {
      if (entry === undefined) this.entries.delete(nonce);
      else this.entries.set(nonce, entry);
    }
    this.current = bounds;
  }
}
