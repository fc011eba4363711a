/**
 * Changes to one sender's transactions that are worked out but not yet visible. All rules about a
 * sender's nonces and funds are here: place, replace, promote, demote, drop. Invariant: the
 * executable ones follow the account's nonce without a gap and their costs together are covered
 * by its balance at the head: what is locked of it covers stake only.
 */
import assert from "node:assert/strict";
import {
  fundsFault,
  replacementFault,
  type SenderAccount,
  senderFault,
  type TransactionFault,
} from "../../chain/transaction-rules.js";
import type { Atoken } from "../../chain/units.js";
import { fundsFor, type SenderFunds } from "./admission/admission.js";
import type { PoolEntry } from "./order/pool-entry.js";
import { accountLimit, type PoolError, refusalOf } from "./pool-error.js";
import type { PoolLimits } from "./pool-limits.js";
import type { TransactionStatus } from "./pool-port.js";
import type { PriceIndex } from "./order/price-index.js";
import type { SenderBounds, SenderQueue } from "./order/sender-queue.js";

/** Fate of a transaction that leaves the pool otherwise than by being mined. */
export type PoolOutcome = Extract<TransactionStatus, { status: "replaced" | "dropped" }>;

/** A transaction that leaves the pool; "passed" when the account's nonce went beyond it. */
export interface RemovedEntry {
  readonly entry: PoolEntry;
  readonly outcome: PoolOutcome | "passed";
}

/** Undoes a change of a draft, if it is the last that is left. */
export type TakeBack = () => void;

/**
 * A sender's transactions with pending changes over `base`. The price index follows each change at
 * once: a draft that is given up has to be withdrawn.
 */
export class SenderDraft {
  /** What differs from `base`; undefined removes the nonce. */
  readonly changes = new Map<bigint, PoolEntry | undefined>();
  /** Entries that may have moved between executable and queued, or are new. */
  readonly moved = new Set<PoolEntry>();
  readonly removed: RemovedEntry[] = [];
  /** Entries that became executable, in order. */
  readonly executable: PoolEntry[] = [];
  /** Change of the number of entries, of their raw bytes and of their weights. */
  countDelta = 0;
  bytesDelta = 0;
  weightDelta = 0;

  private firstNonce: bigint;
  private pendingEnd: bigint;
  private pendingCostAtoken: Atoken;
  private pendingStakeAtoken: Atoken;

  /** Starts from `base` and brings it in line with the account at the head. */
  constructor(
    readonly base: SenderQueue,
    private readonly account: SenderAccount & SenderFunds,
    private readonly limits: PoolLimits,
    private readonly prices: PriceIndex,
  ) {
    ({
      firstNonce: this.firstNonce,
      pendingEnd: this.pendingEnd,
      pendingCostAtoken: this.pendingCostAtoken,
      pendingStakeAtoken: this.pendingStakeAtoken,
    } = base.bounds);
    this.passNonces(account.nonce);
    this.dropUnaffordable();
    this.promote();
  }

  get bounds(): SenderBounds {
    const { firstNonce, pendingEnd, pendingCostAtoken, pendingStakeAtoken } = this;
    return { firstNonce, pendingEnd, pendingCostAtoken, pendingStakeAtoken };
  }

  get pendingCount(): number {
    return Number(this.pendingEnd - this.firstNonce);
  }

  get queuedCount(): number {
    return this.base.count + this.countDelta - this.pendingCount;
  }

  get(nonce: bigint): PoolEntry | undefined {
    return this.changes.has(nonce) ? this.changes.get(nonce) : this.base.get(nonce);
  }

  /**
   * Whether the entry may take its place, before anything is changed.
   * @returns SENDER_NOT_EOA, NONCE_TOO_LOW, INSUFFICIENT_FUNDS, REPLACEMENT_UNDERPRICED,
   * ACCOUNT_LIMIT or undefined
   */
  check(entry: PoolEntry): PoolError | undefined {
    const { nonce } = entry.tx;
    const existing = this.get(nonce);
    const replaced = nonce < this.pendingEnd ? existing : undefined;
    const earlierStakeAtoken = this.pendingStakeAtoken - (replaced?.stakeAtoken ?? 0n);
    const fault =
      senderFault(entry.tx, entry.from, this.account) ??
      fundsFault({
        balanceAtoken: fundsFor(this.account, earlierStakeAtoken + entry.stakeAtoken),
        costAtoken: entry.costAtoken,
        earlierCostAtoken: this.pendingCostAtoken,
        replacedCostAtoken: replaced?.costAtoken,
      }) ??
      (existing && replacementFault(entry.priceAtoken, existing.priceAtoken));
    if (fault !== undefined) return refusalOf(fault);
    if (existing !== undefined) return undefined;
    return this.checkRoom(nonce);
  }

  /** Puts in an entry that passed `check`, replacing and displacing what it has to. */
  place(entry: PoolEntry): void {
    const { nonce } = entry.tx;
    const existing = this.get(nonce);
    if (existing !== undefined) {
      this.discard(existing, { status: "replaced", by: entry.tx.hash });
      if (nonce < this.pendingEnd) {
        this.charge(existing, -1n);
        this.charge(entry, 1n);
        this.executable.push(entry);
      }
    } else if (nonce > this.pendingEnd && this.queuedCount >= this.limits.queuedPerSender) {
      const last = this.farthestQueued();
      if (last !== undefined) {
        this.remove(last.tx.nonce, {
          status: "dropped",
          reason: "displaced by a queued transaction with a lower nonce",
        });
      }
    }
    this.insert(entry);
    this.promote();
  }

  /**
   * Takes entries back from the journal, in order of receipt. They were admitted before, so that
   * prices and bounds are not asked again: of two with one nonce the later one holds it.
   */
  restore(entries: Iterable<PoolEntry>): void {
    for (const entry of entries) {
      if (entry.tx.nonce < this.firstNonce) {
        this.removed.push({ entry, outcome: "passed" });
        continue;
      }
      const existing = this.get(entry.tx.nonce);
      if (existing !== undefined) {
        this.discard(existing, { status: "replaced", by: entry.tx.hash });
      }
      this.insert(entry);
    }
    this.promote();
  }

  /** Puts the price index back to where it was before the draft. */
  withdraw(): void {
    for (const { entry } of this.removed) {
      if (this.base.get(entry.tx.nonce) === entry) this.prices.add(entry);
    }
    for (const [nonce, entry] of this.changes) {
      if (entry !== undefined && this.base.get(nonce) !== entry) this.prices.remove(entry);
    }
  }

  /** The transaction with the highest nonce of those at a price; undefined where there is none. */
  lastAtPrice(priceAtoken: Atoken): PoolEntry | undefined {
    const queued = farthest(this.queued().filter((entry) => entry.priceAtoken === priceAtoken));
    if (queued !== undefined) return queued;
    for (let last = this.pendingEnd - 1n; last >= this.firstNonce; last--) {
      const entry = this.executableAt(last);
      if (entry.priceAtoken === priceAtoken) return entry;
    }
    return undefined;
  }

  /** Takes out the transaction with this nonce and all later ones. @returns as `remove` */
  removeFrom(nonce: bigint, outcome: PoolOutcome): TakeBack {
    const steps: TakeBack[] = [];
    for (const { tx } of this.queued()) {
      if (tx.nonce >= nonce) steps.push(this.remove(tx.nonce, outcome));
    }
    for (let last = this.pendingEnd - 1n; last >= nonce; last--) {
      steps.push(this.remove(last, outcome));
    }
    return () => {
      for (const takeBack of steps.toReversed()) takeBack();
    };
  }

  /**
   * Lets go of queued ones that the whole balance does not cover. Those that only wait until the
   * executable ones before them have cost what they cost stay.
   */
  removeUnpayable(): void {
    for (const { tx, costAtoken, stakeAtoken } of this.queued()) {
      const balanceAtoken = fundsFor(this.account, stakeAtoken);
      const fault = fundsFault({ balanceAtoken, costAtoken, earlierCostAtoken: 0n });
      if (fault !== undefined) this.remove(tx.nonce, droppedFor(fault));
    }
  }

  /**
   * Takes out one transaction; executable ones after it become queued.
   * @returns takes it back, as long as the sender has not changed otherwise since
   */
  remove(nonce: bigint, outcome: PoolOutcome): TakeBack {
    const entry = this.get(nonce);
    if (entry === undefined) return () => undefined;
    const { pendingEnd, pendingCostAtoken, pendingStakeAtoken } = this;
    const wasChanged = this.changes.has(nonce);
    const wasMoved = this.moved.has(entry);
    this.queueFrom(nonce);
    this.changes.set(nonce, undefined);
    this.discard(entry, outcome);
    return () => {
      this.removed.pop();
      this.prices.add(entry);
      this.countDelta++;
      this.bytesDelta += entry.sizeBytes;
      this.weightDelta += entry.weightBytes;
      if (wasChanged) this.changes.set(nonce, entry);
      else this.changes.delete(nonce);
      // What became queued after it may stay noted as moved: that is looked at once more.
      if (wasMoved) this.moved.add(entry);
      this.pendingEnd = pendingEnd;
      this.pendingCostAtoken = pendingCostAtoken;
      this.pendingStakeAtoken = pendingStakeAtoken;
    };
  }

  /** The executable transaction with this nonce: there is one for each below `pendingEnd`. */
  private executableAt(nonce: bigint): PoolEntry {
    const entry = this.get(nonce);
    assert(entry !== undefined, "an executable nonce has no transaction");
    return entry;
  }

  private checkRoom(nonce: bigint): PoolError | undefined {
    if (nonce === this.pendingEnd) {
      return this.pendingCount >= this.limits.executablePerSender
        ? accountLimit(this.pendingCount)
        : undefined;
    }
    if (this.queuedCount < this.limits.queuedPerSender) return undefined;
    // The transaction nearest to execution is worth most: it may displace a farther one.
    const last = this.farthestQueued();
    return last === undefined || last.tx.nonce < nonce ? accountLimit(this.queuedCount) : undefined;
  }

  /** Makes the executable ones from this nonce on queued. */
  private queueFrom(nonce: bigint): void {
    for (let last = this.pendingEnd - 1n; last >= nonce; last--) {
      const demoted = this.executableAt(last);
      this.charge(demoted, -1n);
      this.moved.add(demoted);
      this.pendingEnd = last;
    }
  }

  /** Adds an executable one to what they cost together, or takes it off. */
  private charge({ costAtoken, stakeAtoken }: PoolEntry, times: 1n | -1n): void {
    this.pendingCostAtoken += times * costAtoken;
    this.pendingStakeAtoken += times * stakeAtoken;
  }

  private insert(entry: PoolEntry): void {
    this.prices.add(entry);
    this.changes.set(entry.tx.nonce, entry);
    this.moved.add(entry);
    this.countDelta++;
    this.bytesDelta += entry.sizeBytes;
    this.weightDelta += entry.weightBytes;
  }

  private discard(entry: PoolEntry, outcome: RemovedEntry["outcome"]): void {
    this.prices.remove(entry);
    this.countDelta--;
    this.bytesDelta -= entry.sizeBytes;
    this.weightDelta -= entry.weightBytes;
    this.moved.delete(entry);
    this.removed.push({ entry, outcome });
  }

  /** Lets go of everything that the account's nonce has passed. */
  private passNonces(nonce: bigint): void {
    for (let next = this.firstNonce; next < this.pendingEnd && next < nonce; next++) {
      this.charge(this.executableAt(next), -1n);
      this.pass(next);
    }
    if (nonce > this.firstNonce) this.firstNonce = nonce;
    if (nonce <= this.pendingEnd) return;
    for (const entry of this.base.all()) {
      if (entry.tx.nonce < nonce) this.pass(entry.tx.nonce);
    }
    this.pendingEnd = nonce;
  }

  private pass(nonce: bigint): void {
    const entry = this.get(nonce);
    if (entry === undefined) return;
    this.changes.set(nonce, undefined);
    this.discard(entry, "passed");
  }

  /**
   * An account loses coins only by its own transactions, so this happens only when another
   * node's block held one that this pool did not know. The first that cannot be paid goes, and so
   * do those after it that could not be paid in its place; the others wait for its nonce.
   */
  private dropUnaffordable(): void {
    if (this.pendingCostAtoken <= fundsFor(this.account, this.pendingStakeAtoken)) return;
    let [nonce, earlierCostAtoken, earlierStakeAtoken] = [this.firstNonce, 0n, 0n];
    const faultAt = (at: bigint): TransactionFault | undefined => {
      const { costAtoken, stakeAtoken } = this.executableAt(at);
      const balanceAtoken = fundsFor(this.account, earlierStakeAtoken + stakeAtoken);
      return fundsFault({ balanceAtoken, costAtoken, earlierCostAtoken });
    };
    while (faultAt(nonce) === undefined) {
      const { costAtoken, stakeAtoken } = this.executableAt(nonce);
      earlierCostAtoken += costAtoken;
      earlierStakeAtoken += stakeAtoken;
      nonce++;
    }
    for (let last = this.pendingEnd - 1n; last >= nonce; last--) {
      const fault = faultAt(last);
      if (fault === undefined) this.queueFrom(last);
      else this.remove(last, droppedFor(fault));
    }
  }

  /** Queued ones that follow without a gap become executable while funds and bounds last. */
  private promote(): void {
    while (this.pendingCount < this.limits.executablePerSender) {
      const entry = this.get(this.pendingEnd);
      if (entry === undefined) return;
      const fundsAtoken = fundsFor(this.account, this.pendingStakeAtoken + entry.stakeAtoken);
      if (this.pendingCostAtoken + entry.costAtoken > fundsAtoken) return;
      this.charge(entry, 1n);
      this.pendingEnd++;
      this.moved.add(entry);
      this.executable.push(entry);
    }
  }

  /** Of those that are not executable the farthest, without a look at all the others. */
  private farthestQueued(): PoolEntry | undefined {
    const isQueued = (entry: PoolEntry) => entry.tx.nonce >= this.pendingEnd;
    const changed = [...this.changes.values()].filter((entry) => entry !== undefined);
    const kept = this.base.farthest((entry) => !this.changes.has(entry.tx.nonce));
    return farthest([...changed, ...(kept === undefined ? [] : [kept])].filter(isQueued));
  }

  /** Those that are not executable, in no particular order. */
  private queued(): PoolEntry[] {
    if (this.queuedCount === 0) return [];
    const list: PoolEntry[] = [];
    for (const entry of this.base.all()) {
      const isQueued = entry.tx.nonce >= this.pendingEnd;
      if (isQueued && this.get(entry.tx.nonce) === entry) list.push(entry);
    }
    for (const [nonce, entry] of this.changes) {
      const isNew = entry !== undefined && this.base.get(nonce) !== entry;
      if (isNew && nonce >= this.pendingEnd) list.push(entry);
    }
    return list;
  }
}

/** The one with the highest nonce. */
function farthest(entries: readonly PoolEntry[]): PoolEntry | undefined {
  let found: PoolEntry | undefined;
  for (const entry of entries) {
    if (found === undefined || entry.tx.nonce > found.tx.nonce) found = entry;
  }
  return found;
}

function droppedFor({ message }: TransactionFault): PoolOutcome {
  return { status: "dropped", reason: message };
}
