/** What is visibly in the pool, indexed by sender, by hash and by the age of gapped ones. */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Steps } from "../../chain/steps/steps.js";
import type { HeadChange } from "../blocks/block-pool.js";
import type { PoolRules } from "./admission/admission.js";
import type { PoolEntry } from "./order/pool-entry.js";
import { PriceIndex } from "./order/price-index.js";
import type { SenderDraft } from "./sender-draft.js";
import { voidFault } from "./admission/cosmos-admission.js";
import { Deadlines } from "./order/deadlines.js";
import { SenderQueue } from "./order/sender-queue.js";

/** A gapped transaction and when it became one, by the clock that nobody sets. */
export interface QueuedSince {
  readonly entry: PoolEntry;
  readonly sinceMs: number;
}

/** The pool's indexes; only `commit` changes them, but for the prices, which drafts keep. */
export class PoolContents {
  private readonly senders = new Map<Address, SenderQueue>();
  private readonly byHash = new Map<Hash32, PoolEntry>();
  private readonly bySdkHash = new Map<Hash32, PoolEntry>();
  /** In the order in which they became gapped: the oldest first. */
  private readonly queuedByAge = new Map<PoolEntry, QueuedSince>();
  private readonly deadlines = new Deadlines();
  private bytes = 0;
  private weight = 0;
  private executableCarriedBytes = 0;
  /** Of all transactions, as the one draft that is being worked out changes them. */
  readonly prices = new PriceIndex();

  /** Executable and queued together. */
  get totalCount(): number {
    return this.byHash.size;
  }

  /** Raw bytes of all. */
  get totalBytes(): number {
    return this.bytes;
  }

  /** Sum of their weights: what the bound counts. */
  get totalWeightBytes(): number {
    return this.weight;
  }

  get queuedCount(): number {
    return this.queuedByAge.size;
  }

  /** Bytes of the executable ones as consensus would carry them. */
  get carriedBytes(): number {
    return this.executableCarriedBytes;
  }

  isExecutable(entry: PoolEntry): boolean {
    return this.byHash.get(entry.tx.hash) === entry && !this.queuedByAge.has(entry);
  }

  get(hash: Hash32): PoolEntry | undefined {
    return this.byHash.get(hash);
  }

  getBySdkHash(sdkHash: Hash32): PoolEntry | undefined {
    return this.bySdkHash.get(sdkHash);
  }

  sender(address: Address): SenderQueue | undefined {
    return this.senders.get(address);
  }

  allSenders(): Iterable<SenderQueue> {
    return this.senders.values();
  }

  /**
   * Senders with transactions here whose turn or funds a block may have changed.
   * @param unlocking accounts whose coins become free with time: those of them of which something waits
   */
  *concerned(
    { transactions, touched }: HeadChange,
    unlocking: readonly Address[] = [],
  ): Iterable<Address> {
    const addresses = new Set(touched);
    for (const { from } of transactions.values()) addresses.add(from);
    for (const address of unlocking) {
      const queue = this.senders.get(address);
      if (queue !== undefined && queue.queuedCount > 0) addresses.add(address);
    }
    for (const address of addresses) if (this.senders.has(address)) yield address;
  }

  /** Executable ones held since before a time that pass, each sender's in nonce order. */
  *executableBefore(beforeMs: number, passes: (entry: PoolEntry) => boolean): Iterable<PoolEntry> {
    for (const queue of this.senders.values()) {
      for (const entry of queue.executables()) {
        if (entry.heldSinceMs < beforeMs && passes(entry)) yield entry;
      }
    }
  }

  /** Executable ones, each sender's in nonce order. */
  *executables(): Iterable<PoolEntry> {
    for (const queue of this.senders.values()) yield* queue.executables();
  }

  /** Gapped transactions, oldest first. */
  queuedOldestFirst(): IterableIterator<QueuedSince> {
    return this.queuedByAge.values();
  }

  /** Has dropped what no block after the head can hold any more, one after the other. */
  *dropVoid(rules: PoolRules, drop: (hash: Hash32, reason: string) => void): Steps<void> {
    for (;;) {
      const hash = this.deadlines.takeVoid(rules.headHeight(), rules.headTimeMs());
      if (hash === undefined) return;
      const tx = this.byHash.get(hash)?.tx;
      const fault = tx?.type === "cosmos" ? voidFault(tx, rules) : undefined;
      if (fault !== undefined) drop(hash, fault.log);
      yield;
    }
  }

  /** Makes a sender's draft visible: what it has newly gapped is that since `monotonicMs`. */
  commit(draft: SenderDraft, monotonicMs: number): void {
    const { base, bounds } = draft;
    for (const { entry } of draft.removed) {
      if (this.isExecutable(entry)) this.executableCarriedBytes -= entry.carriedBytes;
      this.byHash.delete(entry.tx.hash);
      this.bySdkHash.delete(entry.sdkHash);
      this.queuedByAge.delete(entry);
      this.deadlines.delete(entry);
    }
    base.apply(draft.changes, bounds);
    for (const entry of draft.moved) {
      if (this.isExecutable(entry)) this.executableCarriedBytes -= entry.carriedBytes;
      this.byHash.set(entry.tx.hash, entry);
      this.bySdkHash.set(entry.sdkHash, entry);
      this.deadlines.add(entry);
      if (entry.tx.nonce < bounds.pendingEnd) {
        this.queuedByAge.delete(entry);
        this.executableCarriedBytes += entry.carriedBytes;
      } else if (!this.queuedByAge.has(entry)) {
        this.queuedByAge.set(entry, { entry, sinceMs: monotonicMs });
      }
    }
    this.bytes += draft.bytesDelta;
    this.weight += draft.weightDelta;
    if (base.count === 0) this.senders.delete(base.address);
    else this.senders.set(base.address, base);
  }
}
