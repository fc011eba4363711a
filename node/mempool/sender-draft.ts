/**
 * Changes to one sender's transactions that are worked out but not yet visible. All rules about a
 * sender's nonces and funds are here: place, replace, promote, demote, drop. Invariant: the
 * executable ones follow the account's nonce without a gap and their costs together are covered
 * by its balance at the head.
 */
import type { PoolEntry } from "./pool-entry.js";
import {
  accountLimit,
  insufficientFunds,
  nonceTooLow,
  type PoolError,
  replacementUnderpriced,
  shortfallText,
} from "./pool-error.js";
import { type PoolLimits, replacementPriceAtoken } from "./pool-limits.js";
import type { TransactionStatus } from "./pool-port.js";
import type { SenderBounds, SenderQueue } from "./sender-queue.js";

/** What the committed state says about the sender. */
export interface SenderAccount {
  readonly nonce: bigint;
  readonly balanceAtoken: bigint;
}

/** Fate of a transaction that leaves the pool otherwise than by being mined. */
export type PoolOutcome = Extract<TransactionStatus, { status: "replaced" | "dropped" }>;

/** A transaction that leaves the pool; "passed" when the account's nonce went beyond it. */
export interface RemovedEntry {
  readonly entry: PoolEntry;
  readonly outcome: PoolOutcome | "passed";
}

/** A sender's transactions with pending changes over `base`. */
export class SenderDraft {
  /** What differs from `base`; undefined removes the nonce. */
  readonly changes = new Map<bigint, PoolEntry | undefined>();
  /** Entries that may have moved between executable and queued, or are new. */
  readonly moved = new Set<PoolEntry>();
  readonly removed: RemovedEntry[] = [];
  /** Entries that became executable, in order. */
  readonly executable: PoolEntry[] = [];
  /** Change of the number of entries and of their raw bytes. */
  countDelta = 0;
  bytesDelta = 0;

  private firstNonce: bigint;
  private pendingEnd: bigint;
  private pendingCostAtoken: bigint;

  /** Starts from `base` and brings it in line with the account at the head. */
  constructor(
    readonly base: SenderQueue,
    private readonly account: SenderAccount,
    private readonly limits: PoolLimits,
  ) {
    ({
      firstNonce: this.firstNonce,
      pendingEnd: this.pendingEnd,
      pendingCostAtoken: this.pendingCostAtoken,
    } = base.bounds);
    this.passNonces(account.nonce);
    this.dropUnaffordable();
    this.promote();
  }

  get bounds(): SenderBounds {
    const { firstNonce, pendingEnd, pendingCostAtoken } = this;
    return { firstNonce, pendingEnd, pendingCostAtoken };
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
   * @returns NONCE_TOO_LOW, INSUFFICIENT_FUNDS, REPLACEMENT_UNDERPRICED, ACCOUNT_LIMIT or undefined
   */
  check(entry: PoolEntry): PoolError | undefined {
    const { nonce } = entry.tx;
    if (nonce < this.account.nonce) return nonceTooLow(this.account.nonce, nonce);
    const existing = this.get(nonce);
    const replaced = nonce < this.pendingEnd ? existing : undefined;
    const { balanceAtoken } = this.account;
    const neededAtoken = this.pendingCostAtoken + entry.costAtoken - (replaced?.costAtoken ?? 0n);
    if (neededAtoken > balanceAtoken) {
      return insufficientFunds({
        balanceAtoken,
        costAtoken: entry.costAtoken,
        queuedCostAtoken: this.pendingCostAtoken,
        replacedCostAtoken: replaced?.costAtoken,
      });
    }
    if (existing !== undefined) {
      const neededPriceAtoken = replacementPriceAtoken(existing.priceAtoken);
      return entry.priceAtoken < neededPriceAtoken
        ? replacementUnderpriced(neededPriceAtoken)
        : undefined;
    }
    return this.checkRoom(nonce);
  }

  /** Puts in an entry that passed `check`, replacing and displacing what it has to. */
  place(entry: PoolEntry): void {
    const { nonce } = entry.tx;
    const existing = this.get(nonce);
    if (existing !== undefined) {
      this.discard(existing, { status: "replaced", by: entry.tx.hash });
      if (nonce < this.pendingEnd) {
        this.pendingCostAtoken += entry.costAtoken - existing.costAtoken;
        this.executable.push(entry);
      }
    } else if (nonce > this.pendingEnd && this.queuedCount >= this.limits.queuedPerSender) {
      const farthest = this.farthestQueued();
      if (farthest !== undefined) {
        this.remove(farthest.tx.nonce, {
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

  /** Takes out one transaction; executable ones after it become queued. */
  remove(nonce: bigint, outcome: PoolOutcome): void {
    const entry = this.get(nonce);
    if (entry === undefined) return;
    for (let next = nonce; next < this.pendingEnd; next++) {
      const demoted = this.get(next);
      if (demoted === undefined) continue;
      this.pendingCostAtoken -= demoted.costAtoken;
      this.moved.add(demoted);
    }
    if (nonce < this.pendingEnd) this.pendingEnd = nonce;
    this.changes.set(nonce, undefined);
    this.discard(entry, outcome);
  }

  private checkRoom(nonce: bigint): PoolError | undefined {
    if (nonce === this.pendingEnd) {
      return this.pendingCount >= this.limits.executablePerSender
        ? accountLimit(this.pendingCount)
        : undefined;
    }
    if (this.queuedCount < this.limits.queuedPerSender) return undefined;
    // The transaction nearest to execution is worth most: it may displace a farther one.
    const farthest = this.farthestQueued();
    return farthest === undefined || farthest.tx.nonce < nonce
      ? accountLimit(this.queuedCount)
      : undefined;
  }

  private insert(entry: PoolEntry): void {
    this.changes.set(entry.tx.nonce, entry);
    this.moved.add(entry);
    this.countDelta++;
    this.bytesDelta += entry.sizeBytes;
  }

  private discard(entry: PoolEntry, outcome: RemovedEntry["outcome"]): void {
    this.countDelta--;
    this.bytesDelta -= entry.sizeBytes;
    this.moved.delete(entry);
    this.removed.push({ entry, outcome });
  }

  /** Lets go of everything that the account's nonce has passed. */
  private passNonces(nonce: bigint): void {
    for (let next = this.firstNonce; next < this.pendingEnd && next < nonce; next++) {
      this.pendingCostAtoken -= this.get(next)?.costAtoken ?? 0n;
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
   * node's block held one that this pool did not know.
   */
  private dropUnaffordable(): void {
    const { balanceAtoken } = this.account;
    if (this.pendingCostAtoken <= balanceAtoken) return;
    let spentAtoken = 0n;
    for (let nonce = this.firstNonce; nonce < this.pendingEnd; nonce++) {
      const costAtoken = this.get(nonce)?.costAtoken ?? 0n;
      if (spentAtoken + costAtoken > balanceAtoken) {
        const reason = shortfallText({
          balanceAtoken,
          costAtoken,
          queuedCostAtoken: spentAtoken,
          replacedCostAtoken: undefined,
        });
        this.remove(nonce, { status: "dropped", reason });
        return;
      }
      spentAtoken += costAtoken;
    }
  }

  /** Queued ones that follow without a gap become executable while funds and bounds last. */
  private promote(): void {
    while (this.pendingCount < this.limits.executablePerSender) {
      const entry = this.get(this.pendingEnd);
      if (entry === undefined) return;
      const costAtoken = this.pendingCostAtoken + entry.costAtoken;
      if (costAtoken > this.account.balanceAtoken) return;
      this.pendingCostAtoken = costAtoken;
      this.pendingEnd++;
      this.moved.add(entry);
      this.executable.push(entry);
    }
  }

  private farthestQueued(): PoolEntry | undefined {
    let farthest: PoolEntry | undefined;
    const consider = (entry: PoolEntry): void => {
      if (entry.tx.nonce < this.pendingEnd || this.get(entry.tx.nonce) !== entry) return;
      if (farthest === undefined || entry.tx.nonce > farthest.tx.nonce) farthest = entry;
    };
    for (const entry of this.base.all()) consider(entry);
    for (const entry of this.changes.values()) if (entry !== undefined) consider(entry);
    return farthest;
  }
}
