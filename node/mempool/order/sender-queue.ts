/**
 * One sender's transactions as the pool shows them: the executable ones, whose nonces follow the
 * account's without a gap, then the queued ones. Changed only by committing a `SenderDraft`.
 */
import type { Address } from "../../../chain/address.js";
import type { Atoken } from "../../../chain/units.js";
import type { PoolEntry } from "./pool-entry.js";

/** Which nonces of a sender are executable, and what those can cost. */
export interface SenderBounds {
  /** Next nonce of the account at the head. */
  readonly firstNonce: bigint;
  /** First nonce that is not executable; >= firstNonce. */
  readonly pendingEnd: bigint;
  /** Sum of the costs of the executable transactions. */
  readonly pendingCostAtoken: Atoken;
  /** The part of it that becomes stake. */
  readonly pendingStakeAtoken: Atoken;
}

/** With more changes at once the order of nonces is made anew, when somebody asks for it. */
const MAX_ORDERED_CHANGES = 1_000;

/** Transactions of one sender by nonce. */
export class SenderQueue {
  private readonly entries = new Map<bigint, PoolEntry>();
  /** All nonces, ascending, once somebody has asked for the highest. */
  private ordered: bigint[] | undefined;
  private current: SenderBounds;

  constructor(
    readonly address: Address,
    firstNonce: bigint,
  ) {
    this.current = {
      firstNonce,
      pendingEnd: firstNonce,
      pendingCostAtoken: 0n,
      pendingStakeAtoken: 0n,
    };
  }

  get bounds(): SenderBounds {
    return this.current;
  }

  /** Executable and queued together. */
  get count(): number {
    return this.entries.size;
  }

  /** Those that are not executable. */
  get queuedCount(): number {
    return this.count - Number(this.current.pendingEnd - this.current.firstNonce);
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
    return [...this.executables()];
  }

  /** The same one by one, for who may not want all of them, or lets others run in between. */
  *executables(): Iterable<PoolEntry> {
    for (let nonce = this.current.firstNonce; nonce < this.current.pendingEnd; nonce++) {
      const entry = this.entries.get(nonce);
      if (entry !== undefined) yield entry;
    }
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

  /** The entry with the highest nonce of those that pass; looked for from the highest on. */
  farthest(passes: (entry: PoolEntry) => boolean): PoolEntry | undefined {
    this.ordered ??= [...this.entries.keys()].toSorted((left, right) => (left < right ? -1 : 1));
    for (let index = this.ordered.length - 1; index >= 0; index--) {
      const nonce = this.ordered[index];
      const entry = nonce === undefined ? undefined : this.entries.get(nonce);
      if (entry !== undefined && passes(entry)) return entry;
    }
    return undefined;
  }

  /** Takes over a draft's outcome: undefined removes the nonce. */
  apply(changes: ReadonlyMap<bigint, PoolEntry | undefined>, bounds: SenderBounds): void {
    if (changes.size > MAX_ORDERED_CHANGES) this.ordered = undefined;
    for (const [nonce, entry] of changes) {
      if (this.entries.has(nonce) !== (entry !== undefined)) this.order(nonce, entry !== undefined);
      if (entry === undefined) this.entries.delete(nonce);
      else this.entries.set(nonce, entry);
    }
    this.current = bounds;
  }

  private order(nonce: bigint, isAdded: boolean): void {
    const { ordered } = this;
    if (ordered === undefined) return;
    let [from, to] = [0, ordered.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((ordered[middle] ?? 0n) < nonce) from = middle + 1;
      else to = middle;
    }
    if (isAdded) ordered.splice(from, 0, nonce);
    else ordered.splice(from, 1);
  }
}
