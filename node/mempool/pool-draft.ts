/**
 * A set of changes to the pool that is worked out against its present contents and becomes
 * visible in one step, or never. Admission works on a draft while its journal write is under way;
 * so does the adjustment to a new block.
 */
import assert from "node:assert/strict";
import type { Address } from "../../chain/address.js";
import { balanceFault, sequenceFault } from "../../chain/cosmos/ante.js";
import type { Hash32 } from "../../chain/hex.js";
import { outbids } from "../../chain/transaction-rules.js";
import { sdkRefusal } from "./admission/cosmos-admission.js";
import { fundsFor, fundsOf, type SenderFunds, type StateAtHead } from "./admission/admission.js";
import type { PoolContents, QueuedSince } from "./pool-contents.js";
import type { PoolEntry } from "./order/pool-entry.js";
import { accountLimit, alreadyKnown, type PoolError, poolFull, underpriced } from "./pool-error.js";
import type { PoolLimits } from "./pool-limits.js";
import type { PoolPart } from "./order/price-index.js";
import { type PoolOutcome, type RemovedEntry, SenderDraft, type TakeBack } from "./sender-draft.js";
import { SenderQueue } from "./order/sender-queue.js";

/** What a draft is worked out from. */
export interface PoolDraftBasis {
  readonly contents: PoolContents;
  readonly state: StateAtHead;
  readonly limits: PoolLimits;
}

/** What committing a draft did. */
export interface PoolDraftOutcome {
  readonly removed: readonly RemovedEntry[];
  /** Executable now and not before, each sender's in the order in which they became so. */
  readonly executable: readonly PoolEntry[];
}

/** A transaction that was dropped, and why. */
export interface DroppedEntry {
  readonly entry: PoolEntry;
  readonly outcome: PoolOutcome;
}

/** What becomes of what makes room by its price, as its status says. */
export const UNDERPRICED: PoolOutcome = { status: "dropped", reason: "underpriced" };

/** What becomes of what makes room because it is behind a gap. */
export const DISPLACED: PoolOutcome = {
  status: "dropped",
  reason: "displaced by newer transactions",
};

/** A sender may have one part in so many of the places that are left to it. */
const SHARE_DIVISOR = 4;

/** Pending changes to many senders. One at a time: each sees the price index as it has made it. */
export class PoolDraft {
  private readonly senders = new Map<Address, SenderDraft>();
  private readonly staged = new Set<Hash32>();
  private readonly oldestQueued: IterableIterator<QueuedSince>;
  /** Gapped ones that come before the next of these, the last one first. */
  private readonly stillOldest: QueuedSince[] = [];
  private totalCount: number;
  private totalWeight: number;
  private queuedCount: number;

  constructor(private readonly basis: PoolDraftBasis) {
    const { contents } = basis;
    this.totalCount = contents.totalCount;
    this.totalWeight = contents.totalWeightBytes;
    this.queuedCount = contents.queuedCount;
    this.oldestQueued = contents.queuedOldestFirst();
  }

  /** Admits one entry into the draft, or says why not. */
  admit(entry: PoolEntry): PoolError | undefined {
    const { contents } = this.basis;
    const { hash } = entry.tx;
    const wasHere = this.staged.has(hash) || contents.get(hash) !== undefined;
    const sender = this.sender(entry.from);
    if (wasHere && sender.get(entry.tx.nonce)?.tx.hash === hash) return alreadyKnown();
    const unfit = cosmosRefusal(sender, entry, fundsOf(this.basis.state, entry.from));
    if (unfit !== undefined) return unfit;
    const refused = sender.check(entry);
    if (refused !== undefined) return refused;
    // This draft let go of these very bytes: one record of the journal cannot have them twice.
    if (wasHere) return this.lostPlace();
    const noRoom = this.makeRoom(sender, entry);
    if (noRoom !== undefined) return noRoom;
    this.change(sender, () => sender.place(entry));
    this.staged.add(hash);
    return undefined;
  }

  /** Takes one sender's journalled transactions back, in order of receipt. */
  restore(address: Address, entries: Iterable<PoolEntry>): void {
    const sender = this.sender(address);
    this.change(sender, () => {
      sender.restore(entries);
      sender.removeUnpayable();
    });
  }

  /** Brings a sender in line with the account at the head, if the pool holds anything of it. */
  adjust(address: Address): void {
    if (this.basis.contents.sender(address) === undefined) return;
    const sender = this.sender(address);
    this.change(sender, () => sender.removeUnpayable());
  }

  /** Takes out one entry, unless it is gone already. */
  remove(entry: PoolEntry, outcome: PoolOutcome): void {
    const sender = this.sender(entry.from);
    if (sender.get(entry.tx.nonce) !== entry) return;
    this.change(sender, () => sender.remove(entry.tx.nonce, outcome));
  }

  /** Drops what has been gapped since before a time, by the clock that nobody sets. */
  expire(beforeMs: number): void {
    for (const { entry, sinceMs } of this.basis.contents.queuedOldestFirst()) {
      if (sinceMs >= beforeMs) return;
      const sender = this.sender(entry.from);
      const queued = entry.tx.nonce >= sender.bounds.pendingEnd;
      if (queued) this.remove(entry, { status: "dropped", reason: "expired behind a nonce gap" });
    }
  }

  /** What was dropped, and so has to stay away once that is on disk. */
  dropped(): DroppedEntry[] {
    const dropped: DroppedEntry[] = [];
    for (const sender of this.senders.values()) {
      for (const { entry, outcome } of sender.removed) {
        if (outcome !== "passed" && outcome.status === "dropped") dropped.push({ entry, outcome });
      }
    }
    return dropped;
  }

  /** The refusal of what this draft has let go of: it may be sent again. */
  lostPlace(): PoolError {
    const cheapest = this.basis.contents.prices.cheapest();
    return cheapest === undefined ? poolFull() : underpriced(cheapest.priceAtoken + 1n);
  }

  /** What made room by its price. */
  evicted(): PoolEntry[] {
    const made = this.dropped().filter(({ outcome }) => outcome === UNDERPRICED);
    return made.map(({ entry }) => entry);
  }

  /** Drops again what an earlier draft dropped, as far as it is still there. */
  dropAgain(dropped: readonly DroppedEntry[]): void {
    for (const { entry, outcome } of dropped.toSorted(byNonceDescending)) {
      this.remove(entry, outcome);
    }
  }

  /** Gives the draft up. Only then may another one be made. */
  withdraw(): void {
    for (const sender of this.senders.values()) sender.withdraw();
    this.senders.clear();
  }

  /** Makes everything visible. The contents must not have changed since the draft was made. */
  commit(monotonicMs: number): PoolDraftOutcome {
    const removed: RemovedEntry[] = [];
    const executable: PoolEntry[] = [];
    for (const sender of this.senders.values()) {
      this.basis.contents.commit(sender, monotonicMs);
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
    const account = {
      nonce: state.nonce(address),
      ...fundsOf(state, address),
      hasCode: state.hasCode(address),
    };
    const base = contents.sender(address) ?? new SenderQueue(address, account.nonce);
    const draft = new SenderDraft(base, account, limits, contents.prices);
    this.totalCount += draft.countDelta;
    this.totalWeight += draft.weightDelta;
    this.queuedCount += draft.queuedCount - base.queuedCount;
    this.senders.set(address, draft);
    return draft;
  }

  /** Runs a change of one sender and keeps the totals in step. */
  private change<T>(sender: SenderDraft, work: () => T): T {
    const { countDelta, weightDelta, queuedCount } = sender;
    const result = work();
    this.totalCount += sender.countDelta - countDelta;
    this.totalWeight += sender.weightDelta - weightDelta;
    this.queuedCount += sender.queuedCount - queuedCount;
    return result;
  }

  /**
   * Finds a place for an entry that its sender may send, at the expense of others if need be; where
   * there is none, nobody has lost anything.
   * @returns ACCOUNT_LIMIT, POOL_FULL, UNDERPRICED or undefined
   */
  private makeRoom(sender: SenderDraft, entry: PoolEntry): PoolError | undefined {
    const { limits } = this.basis;
    const replaced = sender.get(entry.tx.nonce);
    const isNew = replaced === undefined;
    const isGapped = isNew && entry.tx.nonce > sender.bounds.pendingEnd;
    if (isNew && !isGapped && this.isOverShare(sender, entry)) {
      return accountLimit(sender.pendingCount);
    }
    const addedCount = isNew ? 1 : 0;
    const addedWeight = entry.weightBytes - (isNew ? 0 : replaced.weightBytes);
    const excess = (): PoolPart => ({
      count: addedCount === 0 ? 0 : this.totalCount + addedCount - limits.totalCount,
      weightBytes: addedWeight <= 0 ? 0 : this.totalWeight + addedWeight - limits.totalBytes,
    });
    const overflows = (): boolean => {
      const { count, weightBytes } = excess();
      return count > 0 || weightBytes > 0 || (isGapped && this.queuedCount >= limits.queuedCount);
    };
    const steps: TakeBack[] = [];
    let refused: PoolError | undefined;
    while (refused === undefined && overflows()) {
      if (this.displaceOldestQueued(entry.from, steps)) continue;
      // What cannot be mined now never displaces what can, whatever it says that it would pay.
      refused = isGapped ? poolFull() : this.displaceCheapest(entry, excess().weightBytes, steps);
    }
    if (refused !== undefined) for (const takeBack of steps.toReversed()) takeBack();
    return refused;
  }

  /**
   * True when the sender has its share already: a quarter of the places that are free or held by
   * what pays less than the entry, so that it shrinks as the pool fills. A few are everybody's.
   */
  private isOverShare(sender: SenderDraft, { priceAtoken }: PoolEntry): boolean {
    const { limits, contents } = this.basis;
    const { pendingCount } = sender;
    if (pendingCount < limits.guaranteedPerSender) return false;
    // Gapped ones make room for executable ones at any price.
    const freeCount = limits.totalCount - (this.totalCount - this.queuedCount);
    if (pendingCount < freeCount / SHARE_DIVISOR) return false;
    const placeCount = freeCount + contents.prices.cheaperThan(priceAtoken).count;
    return pendingCount >= placeCount / SHARE_DIVISOR;
  }

  /**
   * Makes room at the expense of the cheapest transaction and the later ones of its sender. The
   * newcomer must pay more; where both pay the same, its sender must have at most half as many at
   * that price. A sender's later transaction is worth no more than its cheapest earlier one.
   */
  private displaceCheapest(
    entry: PoolEntry,
    excessWeight: number,
    steps: TakeBack[],
  ): PoolError | undefined {
    const { prices } = this.basis.contents;
    const level = prices.cheapest();
    if (level === undefined) return poolFull();
    const own = level.countOf(entry.from);
    const from = level.largestSender();
    const paysMore = own === 0 && entry.priceAtoken > level.priceAtoken;
    const isFairer = entry.priceAtoken >= level.priceAtoken && 2 * (own + 1) <= level.countOf(from);
    if (!paysMore && !isFairer) return underpriced(level.priceAtoken + 1n);
    if (excessWeight > prices.cheaperThan(entry.priceAtoken).weightBytes && !isFairer) {
      return underpriced(level.priceAtoken + 1n);
    }
    const sender = this.sender(from);
    // Making the sender's draft may itself have let go of what the head has passed.
    if (level.countOf(from) === 0) return undefined;
    const last = sender.lastAtPrice(level.priceAtoken);
    assert(last !== undefined, "the price index names a transaction that is not there");
    const takeBack = this.change(sender, () => sender.removeFrom(last.tx.nonce, UNDERPRICED));
    steps.push(() => this.change(sender, takeBack));
    return undefined;
  }

  /**
   * Makes room at the expense of the longest gapped transaction. The newcomer's own sender is
   * passed over: the newcomer may be what closes its gap.
   */
  private displaceOldestQueued(newcomer: Address, steps: TakeBack[]): boolean {
    const passedOver: QueuedSince[] = [];
    try {
      for (let next = this.nextOldest(); next !== undefined; next = this.nextOldest()) {
        const { entry } = next;
        const sender = this.sender(entry.from);
        const isQueued =
          sender.get(entry.tx.nonce) === entry && entry.tx.nonce >= sender.bounds.pendingEnd;
        if (!isQueued) continue;
        if (entry.from === newcomer) {
          passedOver.push(next);
          continue;
        }
        const takeBack = this.change(sender, () => sender.remove(entry.tx.nonce, DISPLACED));
        const displaced = next;
        steps.push(() => {
          this.change(sender, takeBack);
          this.stillOldest.push(displaced);
        });
        return true;
      }
      return false;
    } finally {
      this.stillOldest.push(...passedOver.toReversed());
    }
  }

  private nextOldest(): QueuedSince | undefined {
    const first = this.stillOldest.pop();
    if (first !== undefined) return first;
    const next = this.oldestQueued.next();
    return next.done === true ? undefined : next.value;
  }
}

/**
 * In the SDK's words: a Cosmos transaction that is not its sender's next and outbids none, or that
 * cannot be paid after those before it.
 */
function cosmosRefusal(
  sender: SenderDraft,
  entry: PoolEntry,
  funds: SenderFunds,
): PoolError | undefined {
  if (entry.tx.type !== "cosmos") return undefined;
  const { pendingEnd, pendingCostAtoken, pendingStakeAtoken } = sender.bounds;
  const { nonce } = entry.tx;
  const held = sender.get(nonce);
  const isBehindGap = nonce > pendingEnd && !entry.isGapless;
  const isOutbid = held !== undefined && outbids(entry.priceAtoken, held.priceAtoken);
  const isInPlace = nonce === pendingEnd || isBehindGap || isOutbid;
  const replaced = nonce < pendingEnd ? held : undefined;
  const earlierStakeAtoken = pendingStakeAtoken - (replaced?.stakeAtoken ?? 0n);
  const fundsAtoken = fundsFor(funds, earlierStakeAtoken + entry.stakeAtoken);
  const leftAtoken = fundsAtoken - pendingCostAtoken + (replaced?.costAtoken ?? 0n);
  const fault =
    (isInPlace ? undefined : sequenceFault(pendingEnd, nonce)) ??
    balanceFault(leftAtoken < 0n ? 0n : leftAtoken, entry.costAtoken);
  return fault === undefined ? undefined : sdkRefusal(fault);
}

function byNonceDescending(left: DroppedEntry, right: DroppedEntry): number {
  return Number(right.entry.tx.nonce - left.entry.tx.nonce);
}
