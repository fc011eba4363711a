/**
 * A set of changes to the pool that is worked out against its present contents and becomes
 * visible in one step, or never. Admission works on a draft while its journal write is under way;
 * so does the adjustment to a new block.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import { checkCallGas, checkSender, type PoolRules, type StateAtHead } from "./admission.js";
import type { PoolContents, QueuedSince } from "./pool-contents.js";
import type { PoolEntry } from "./pool-entry.js";
import { alreadyKnown, type PoolError, poolFull } from "./pool-error.js";
import type { PoolLimits } from "./pool-limits.js";
import { type PoolOutcome, type RemovedEntry, SenderDraft } from "./sender-draft.js";
import { SenderQueue } from "./sender-queue.js";

/** What a draft is worked out from. */
export interface PoolDraftBasis {
  readonly contents: PoolContents;
  readonly state: StateAtHead;
  readonly rules: PoolRules;
  readonly limits: PoolLimits;
}

/** What committing a draft did. */
export interface PoolDraftOutcome {
  readonly removed: readonly RemovedEntry[];
  /** Executable now and not before, each sender's in the order in which they became so. */
  readonly executable: readonly PoolEntry[];
}

/** Pending changes to many senders. */
export class PoolDraft {
  private readonly senders = new Map<Address, SenderDraft>();
  private readonly staged = new Set<Hash32>();
  private readonly oldestQueued: IterableIterator<QueuedSince>;
  private totalCount: number;
  private totalBytes: number;
  private queuedCount: number;

  constructor(private readonly basis: PoolDraftBasis) {
    const { contents } = basis;
    this.totalCount = contents.totalCount;
    this.totalBytes = contents.totalBytes;
    this.queuedCount = contents.queuedCount;
    this.oldestQueued = contents.queuedOldestFirst();
  }

  /** Admits one entry into the draft, or says why not. */
  admit(entry: PoolEntry): PoolError | undefined {
    const { contents, rules, state, limits } = this.basis;
    const { hash } = entry.tx;
    if (this.staged.has(hash) || contents.get(hash) !== undefined) return alreadyKnown();
    const unfit = checkSender(entry.from, state) ?? checkCallGas(entry.tx, rules, state);
    if (unfit !== undefined) return unfit;
    const sender = this.sender(entry.from);
    const refused = sender.check(entry);
    if (refused !== undefined) return refused;
    const replaced = sender.get(entry.tx.nonce);
    const addedCount = replaced === undefined ? 1 : 0;
    const addedBytes = entry.sizeBytes - (replaced?.sizeBytes ?? 0);
    const queues = addedCount === 1 && entry.tx.nonce > sender.bounds.pendingEnd;
    const overflows = (): boolean =>
      this.totalCount + addedCount > limits.totalCount ||
      (addedBytes > 0 && this.totalBytes + addedBytes > limits.totalBytes) ||
      (queues && this.queuedCount >= limits.queuedCount);
    while (overflows()) {
      if (!this.displaceOldestQueued(entry.from)) return poolFull();
    }
    this.change(sender, () => sender.place(entry));
    this.staged.add(hash);
    return undefined;
  }

  /** Takes one sender's journalled transactions back, in order of receipt. */
  restore(address: Address, entries: Iterable<PoolEntry>): void {
    const sender = this.sender(address);
    this.change(sender, () => sender.restore(entries));
  }

  /** Brings a sender in line with the account at the head, if the pool holds anything of it. */
  adjust(address: Address): void {
    if (this.basis.contents.sender(address) !== undefined) this.sender(address);
  }

  /** Takes out one entry, unless it is gone already. */
  remove(entry: PoolEntry, outcome: PoolOutcome): void {
    const sender = this.sender(entry.from);
    if (sender.get(entry.tx.nonce) !== entry) return;
    this.change(sender, () => sender.remove(entry.tx.nonce, outcome));
  }

  /** Drops what has been gapped since before the given time. */
  expire(beforeMs: number): void {
    for (const { entry, sinceMs } of this.basis.contents.queuedOldestFirst()) {
      if (sinceMs >= beforeMs) return;
      const sender = this.sender(entry.from);
      const queued = entry.tx.nonce >= sender.bounds.pendingEnd;
      if (queued) this.remove(entry, { status: "dropped", reason: "expired behind a nonce gap" });
    }
  }

  /** Makes everything visible. The contents must not have changed since the draft was made. */
  commit(nowMs: number): PoolDraftOutcome {
    const removed: RemovedEntry[] = [];
    const executable: PoolEntry[] = [];
    for (const sender of this.senders.values()) {
      this.basis.contents.commit(sender, nowMs);
      removed.push(...sender.removed);
      for (const entry of sender.executable) {
        // A later one of the same draft may have replaced it.
        if (sender.base.executable(entry.tx.nonce) === entry) executable.push(entry);
      }
    }
    return { removed, executable };
  }

  private sender(address: Address): SenderDraft {
    const known = this.senders.get(address);
    if (known !== undefined) return known;
    const { contents, state, limits } = this.basis;
    const account = { nonce: state.nonce(address), balanceAtoken: state.balanceAtoken(address) };
    const base = contents.sender(address) ?? new SenderQueue(address, account.nonce);
    const queuedBefore = base.count - Number(base.bounds.pendingEnd - base.bounds.firstNonce);
    const draft = new SenderDraft(base, account, limits);
    this.totalCount += draft.countDelta;
    this.totalBytes += draft.bytesDelta;
    this.queuedCount += draft.queuedCount - queuedBefore;
    this.senders.set(address, draft);
    return draft;
  }

  /** Runs a change of one sender and keeps the totals in step. */
  private change(sender: SenderDraft, work: () => void): void {
    const { countDelta, bytesDelta, queuedCount } = sender;
    work();
    this.totalCount += sender.countDelta - countDelta;
    this.totalBytes += sender.bytesDelta - bytesDelta;
    this.queuedCount += sender.queuedCount - queuedCount;
  }

  /**
   * Makes room at the expense of the longest gapped transaction. The newcomer's own sender is
   * passed over: the newcomer may be what closes its gap.
   */
  private displaceOldestQueued(newcomer: Address): boolean {
    for (;;) {
      const next = this.oldestQueued.next();
      if (next.done === true) return false;
      const { entry } = next.value;
      if (entry.from === newcomer) continue;
      const sender = this.sender(entry.from);
      const stillQueued =
        sender.get(entry.tx.nonce) === entry && entry.tx.nonce >= sender.bounds.pendingEnd;
      if (!stillQueued) continue;
      this.remove(entry, { status: "dropped", reason: "displaced by newer transactions" });
      return true;
    }
  }
}
