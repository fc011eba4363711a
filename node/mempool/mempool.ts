/**
 * The mempool: admits transactions, keeps them in nonce order per sender and offers them to
 * blocks by price. A hash is answered, served and offered only after its journal entry is
 * durable; admissions share journal writes (group commit). All changes go through a `PoolDraft`.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import { eachInSteps, type Steps } from "../../chain/steps/steps.js";
import type { Atoken } from "../../chain/units.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { BlockLimits, BlockPool, HeadChange } from "../blocks/block-pool.js";
import type { EventBus, PendingTransaction, TransactionLocation } from "../view/event-bus.js";
import { Batcher } from "../../runtime/process/batcher.js";
import { type PoolRules, type StateAtHead, waitReason } from "./admission/admission.js";
import { Intakes } from "./admission/intake.js";
import { loadOf, WaitingByWay, wayOf } from "./admission/ways.js";
import { MinedBlock } from "./mined-block.js";
import { BlockSelection } from "./order/ordering.js";
import { keptOutcome, OutcomeHistory } from "./outcome-history.js";
import { PoolContents } from "./pool-contents.js";
import { type DroppedEntry, PoolDraft, UNDERPRICED } from "./pool-draft.js";
import { bySender, type PoolEntry } from "./order/pool-entry.js";
import type { PoolStats } from "./pool-stats.js";
import { alreadyKnown, nodeHalted, PoolError, poolFull, underpriced } from "./pool-error.js";
import {
  type Admission,
  JournalAccount,
  type Judgement,
  type PoolJournal,
} from "./pool-journal.js";
import { DEFAULT_POOL_LIMITS, type PoolLimits } from "./pool-limits.js";
import type { NetworkPool, PoolErrorCode, SenderContent, TransactionPool } from "./pool-port.js";
import type { TransactionOrigin, TransactionStatus } from "./pool-port.js";
import type { PoolOutcome, RemovedEntry } from "./sender-draft.js";
import { beyondRoom, readStoredPool, type StoredEntry, wholeEntry } from "./stored-pool.js";
import { InlineRecovery, type SenderRecovery } from "./recovery/sender-recovery.js";

/** What the pool needs from the node. */
export interface MempoolPorts {
  readonly state: StateAtHead;
  readonly journal: PoolJournal;
  /** Gets `pendingTransactions`. */
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly rules: PoolRules;
  readonly limits?: Partial<PoolLimits>;
  /** Accounts whose coins become free with time, without a transaction. */
  readonly unlocking?: readonly Address[];
  /** Where a transaction was mined; the chain's index. */
  locate(hash: Hash32): TransactionLocation | undefined;
  /** The oldest block that the index knows the transactions of, beside block 0. */
  oldestHeight(): number;
  /** Why nothing may be admitted now; undefined in normal operation. */
  haltReason(): string | undefined;
  /** Told of a failed journal write or a state that cannot be read; the next call tries again. */
  onJournalFault(error: unknown): void;
  /** The default recovers on this thread. */
  readonly recovery?: SenderRecovery;
}

/** Most transactions that one journal write takes from several calls: judging them takes 5 ms. */
const GROUP_TRANSACTIONS = 512;

type Answer = Hash32 | PoolError;

/** A group worked out at one head. */
interface Staged extends Judgement {
  readonly draft: PoolDraft;
  readonly answers: readonly Answer[];
}

/** The node's only pool. Reads are synchronous and show durable transactions only. */
export class Mempool implements TransactionPool, NetworkPool, BlockPool {
  /** See `NetworkPool`. */
  readonly limits: PoolLimits;
  private readonly contents = new PoolContents();
  private readonly history: OutcomeHistory;
  private readonly intakes: Intakes;
  private readonly waiting: WaitingByWay;
  private readonly commits: Batcher<Admission, Answer>;
  private readonly account: JournalAccount;
  private readonly refusedTotal = new Map<PoolErrorCode, number>();
  /** The draft that is being worked out; each one starts by taking the one before it back. */
  private draft: PoolDraft | undefined;
  /** The head's block, while the pool lets go of it. */
  private mined: MinedBlock | undefined;
  private readonly isMined = (hash: Hash32): boolean => this.ports.locate(hash) !== undefined;
  private admittedTotal = 0;
  private replacedTotal = 0;
  private droppedTotal = 0;
  private evictedTotal = 0;
  private closed = false;

  private constructor(private readonly ports: MempoolPorts) {
    this.limits = { ...DEFAULT_POOL_LIMITS, ...ports.limits };
    this.waiting = new WaitingByWay(this.limits);
    this.history = new OutcomeHistory(this.limits.outcomeCount);
    this.account = new JournalAccount(ports.journal);
    this.intakes = new Intakes({
      clock: ports.clock,
      rules: ports.rules,
      isKnown: (hash, origin) => {
        const isEnough = origin === "peer" || !this.account.isUnwritten(hash);
        return isEnough && this.get(hash) !== undefined;
      },
      priceToReachAtoken: () => this.priceToReachAtoken(),
      recovery: ports.recovery ?? new InlineRecovery(),
    });
    this.commits = new Batcher({
      run: (group) => this.commitGroup(group),
      maxBatchItems: GROUP_TRANSACTIONS,
    });
  }

  /** Opens the pool with what is left of the journal. Throws INVALID_TRANSACTION for a damaged one. */
  static async open(ports: MempoolPorts): Promise<Mempool> {
    const pool = new Mempool(ports);
    await pool.load();
    return pool;
  }

  /** See `TransactionPool`. */
  async submit(
    raws: readonly Uint8Array[],
    origin: TransactionOrigin = "client",
  ): Promise<readonly Answer[]> {
    const halted = this.haltedRefusal();
    if (halted !== undefined) return raws.map(() => this.counted(halted));
    const way = wayOf(raws, origin);
    const leave = this.waiting.enter(way, loadOf(raws));
    if (leave === undefined) return raws.map(() => this.counted(poolFull()));
    try {
      const { prepared, committed } = await this.intakes.take(raws, way, (items) => {
        const entries = items.filter((item): item is PoolEntry => "tx" in item);
        const admissions = entries.map((entry) => ({ entry, origin }));
        // The promise travels in an object: the next call need not wait for this one's commit.
        return { prepared: items, committed: this.commits.add(admissions) };
      });
      const answers = (await committed).values();
      return prepared.map((item) => {
        if (item instanceof PoolError) return this.counted(item);
        if ("knownHash" in item) return this.counted(this.knownAnswer(item.knownHash));
        const answer = answers.next().value ?? nodeHalted("no answer from the group commit");
        return answer instanceof PoolError ? this.counted(answer) : answer;
      });
    } finally {
      leave();
    }
  }

  /** The transaction if it is in the pool, executable or queued. */
  get(hash: Hash32): PendingTransaction | undefined {
    return this.visible(this.contents.get(hash));
  }

  /** The same by the SHA-256 of the SDK Tx around it. */
  getBySdkHash(sdkHash: Hash32): PendingTransaction | undefined {
    return this.visible(this.contents.getBySdkHash(sdkHash));
  }

  /** See `TransactionPool`; the account's own nonce when the pool holds nothing executable. */
  pendingNonce(address: Address): bigint {
    const nonce = this.ports.state.nonce(address);
    const end = this.contents.sender(address)?.bounds.pendingEnd ?? nonce;
    return end > nonce ? end : nonce;
  }

  /** By either hash; `missingNonce` of a queued one is its sender's first nonce that is not executable. */
  status(hash: Hash32): TransactionStatus {
    const entry = this.visible(this.contents.get(hash) ?? this.contents.getBySdkHash(hash));
    if (entry !== undefined) {
      const bounds = this.contents.sender(entry.from)?.bounds;
      const missingNonce = bounds?.pendingEnd ?? entry.tx.nonce;
      if (entry.tx.nonce < missingNonce) return { status: "pending" };
      const isNext = entry.tx.nonce === missingNonce;
      const { limits } = this;
      const reason = isNext ? waitReason(entry, bounds, { ...this.ports, limits }) : undefined;
      return { status: "queued", missingNonce, ...(reason === undefined ? {} : { reason }) };
    }
    const outcome = this.history.get(hash, this.mined);
    if (outcome !== undefined) return outcome;
    const location = this.ports.locate(hash);
    if (location === undefined) return { status: "unknown" };
    return { status: "included", height: location.height, index: location.index };
  }

  /** See `TransactionPool`. */
  counts(): { readonly pending: number; readonly queued: number } {
    const { totalCount, queuedCount } = this.contents;
    const held = this.mined?.heldIn(this.contents);
    const pending = totalCount - queuedCount - (held?.executable.size ?? 0);
    return { pending, queued: queuedCount - (held?.queued.size ?? 0) };
  }

  /** See `TransactionPool`. */
  carriedBytes(): number {
    return this.contents.carriedBytes - (this.mined?.heldIn(this.contents).carriedBytes ?? 0);
  }

  /** See `TransactionPool`. */
  *executables(): Iterable<PendingTransaction> {
    for (const entry of this.contents.executables()) {
      if (this.visible(entry) !== undefined) yield entry;
    }
  }

  /** See `TransactionPool`. */
  *senders(): Iterable<readonly [Address, SenderContent]> {
    for (const { address } of this.contents.allSenders()) {
      const own = this.contentFrom(address);
      if (own.pending.length + own.queued.length > 0) yield [address, own];
    }
  }

  /** See `TransactionPool`. */
  contentFrom(address: Address): SenderContent {
    const queue = this.contents.sender(address);
    const [pending, queued] = [queue?.pending() ?? [], queue?.queued() ?? []];
    if (this.mined === undefined) return { pending, queued };
    return { pending: this.mined.without(pending), queued: this.mined.without(queued) };
  }

  /** See `NetworkPool`. */
  promised(beforeMs: number): Iterable<PendingTransaction> {
    return this.contents.executableBefore(beforeMs, (entry) => {
      return !this.account.isUnwritten(entry.tx.hash) && this.visible(entry) !== undefined;
    });
  }

  /** Offers the executable transactions to one block, without removing them. */
  takeForBlock(limits: BlockLimits): BlockSelection {
    return new BlockSelection(this.contents.allSenders(), limits);
  }

  /** See `BlockPool`: after the atomic write, with `state` at the new head; touched senders only. */
  onBlockCommitted(change: HeadChange): Steps<void> {
    this.mined = new MinedBlock(change.transactions, this.isMined);
    return this.letGo(change, this.mined);
  }

  /** Sender by sender; groups of admissions, which would meet all of them at once, wait. */
  private *letGo(change: HeadChange, mined: MinedBlock): Steps<void> {
    try {
      for (const address of this.contents.concerned(change, this.ports.unlocking)) {
        const draft = this.newDraft();
        draft.adjust(address);
        this.apply(draft);
        yield;
      }
      const draft = this.newDraft();
      draft.expire(this.ports.clock.monotonicMs() - this.limits.queuedLifetimeMs);
      this.apply(draft);
      yield* this.contents.dropVoid(this.ports.rules, (hash, why) => this.drop(hash, why));
      yield* eachInSteps(change.transactions.keys(), (hash) => this.history.delete(hash));
    } finally {
      this.mined = undefined;
      mined.end();
    }
  }

  /** What of the contents is not in the head's block. */
  private visible(entry: PoolEntry | undefined): PoolEntry | undefined {
    return entry !== undefined && this.mined?.has(entry.tx.hash) === true ? undefined : entry;
  }

  /**
   * Takes out a transaction that can never be executed, whatever the pool thinks of it; later
   * ones of its sender become queued. Nothing happens when it is not in the pool.
   */
  drop(hash: Hash32, reason: string): void {
    const entry = this.contents.get(hash);
    if (entry === undefined) return;
    const draft = this.newDraft();
    draft.remove(entry, { status: "dropped", reason });
    this.apply(draft);
  }

  /** Gauges and counters. */
  stats(): PoolStats {
    const { pending, queued } = this.counts();
    const { admittedTotal, replacedTotal, droppedTotal, evictedTotal } = this;
    return {
      pendingCount: pending,
      queuedCount: queued,
      sizeBytes: this.contents.totalBytes,
      waitingCount: this.waiting.count,
      admittedTotal,
      replacedTotal,
      droppedTotal,
      evictedTotal,
      journalAppendsTotal: this.account.appendsTotal,
      refusedTotal: this.refusedTotal,
    };
  }

  /** Refuses what comes from now on and waits for what is under way. */
  async close(): Promise<void> {
    this.closed = true;
    await this.intakes.idle();
    await this.commits.idle();
  }

  private haltedRefusal(): PoolError | undefined {
    if (this.closed) return nodeHalted("it is shutting down");
    const reason = this.ports.haltReason();
    return reason === undefined ? undefined : nodeHalted(reason);
  }

  /** Of what was in the pool when it came: whatever came with it may have displaced it since. */
  private knownAnswer(hash: Hash32): PoolError {
    if (this.status(hash).status !== "dropped") return alreadyKnown();
    const cheapest = this.contents.prices.cheapest();
    return cheapest === undefined ? poolFull() : underpriced(cheapest.priceAtoken + 1n);
  }

  private counted(error: PoolError): PoolError {
    this.refusedTotal.set(error.code, (this.refusedTotal.get(error.code) ?? 0) + 1);
    return error;
  }

  /** One journal write for the whole group; nothing of it is visible before that is durable. */
  private async commitGroup(group: readonly Admission[]): Promise<readonly Answer[]> {
    await this.flushRemovals();
    if (group.length === 0) return [];
    const entries = group.map(({ entry }) => entry);
    let dropped: readonly DroppedEntry[] = [];
    try {
      let staged = this.stage(entries);
      dropped = staged.draft.dropped().filter(({ entry: { tx } }) => {
        return this.contents.get(tx.hash) !== undefined && !this.account.isUnwritten(tx.hash);
      });
      const written = this.account.toBeWritten(group, staged);
      await this.account.append([...written.values()], dropped);
      while (this.mined !== undefined) await this.mined.ended;
      // A block came in meanwhile: what was accepted is judged again at the new head.
      if (this.draft !== staged.draft) staged = this.stage(entries, staged.answers, dropped);
      this.account.noteUnwritten(group, staged, written);
      this.apply(staged.draft, dropped);
      for (const hash of written.keys()) {
        // Refused at a newer head, or a peer's that left while it was written for a client.
        if (this.contents.get(hash) === undefined) this.account.noteGone(hash);
      }
      if (this.account.isBehind) this.commits.wake();
      this.admittedTotal += staged.answers.filter((item) => !(item instanceof PoolError)).length;
      return staged.answers;
    } catch (error) {
      this.ports.onJournalFault(error);
      this.giveUp(entries, dropped);
      // All of them, because later ones were judged by those that are now not admitted.
      const answer = nodeHalted("the pool cannot write its journal", error);
      return entries.map(() => answer);
    }
  }

  /** Part of a failed write may have reached the disk: what it brought goes, and so what it took. */
  private giveUp(entries: readonly PoolEntry[], dropped: readonly DroppedEntry[]): void {
    this.draft?.withdraw();
    this.draft = undefined;
    if (dropped.length > 0) {
      const draft = this.newDraft();
      draft.dropAgain(dropped);
      this.apply(draft);
    }
    for (const { tx } of entries) {
      if (this.contents.get(tx.hash) === undefined) this.account.noteGone(tx.hash);
    }
  }

  private newDraft(): PoolDraft {
    this.draft?.withdraw();
    const { contents, limits } = this;
    this.draft = new PoolDraft({ contents, state: this.ports.state, limits });
    return this.draft;
  }

  /**
   * Works a group out at the present head.
   * @param former answers at an older head, whose refusals stand
   * @param dropped what the journal has already let go of
   */
  private stage(
    entries: readonly PoolEntry[],
    former?: readonly Answer[],
    dropped: readonly DroppedEntry[] = [],
  ): Staged {
    const draft = this.newDraft();
    draft.dropAgain(dropped);
    const answers: Answer[] = entries.map((entry, index) => {
      const answer = former?.[index];
      return answer instanceof PoolError ? answer : (draft.admit(entry) ?? entry.tx.hash);
    });
    const outbid = new Set(draft.evicted());
    const lost = new Set(draft.dropped().map(({ entry }) => entry.tx.hash));
    if (lost.size === 0) return { draft, answers, outbid };
    // Whatever the group itself displaced again was never there, and is not known either.
    return {
      draft,
      answers: answers.map((answer, index) => {
        const entry = entries[index];
        if (entry === undefined) return answer;
        if (!(answer instanceof PoolError)) {
          return outbid.has(entry) ? underpriced(entry.priceAtoken + 1n) : answer;
        }
        const isLost = answer.code === "ALREADY_KNOWN" && lost.has(entry.tx.hash);
        return isLost ? draft.lostPlace() : answer;
      }),
      outbid,
    };
  }

  /** Makes a draft visible, records what became of the removed ones and tells the bus. */
  private apply(draft: PoolDraft, dropped: readonly DroppedEntry[] = []): void {
    const { removed, executable } = draft.commit(this.ports.clock.monotonicMs());
    this.draft = undefined;
    this.recordRemovals(removed, dropped);
    if (executable.length > 0) this.ports.bus.emit("pendingTransactions", executable);
  }

  private recordRemovals(removed: readonly RemovedEntry[], dropped: readonly DroppedEntry[]): void {
    const mined = this.mined ?? new MinedBlock(new Map(), this.isMined);
    const deleted = new Set(dropped.map(({ entry }) => entry.tx.hash));
    for (const item of removed) {
      const { hash } = item.entry.tx;
      const removal = mined.removal(item);
      mined.left(item.entry);
      if (removal.outcome === undefined) {
        this.history.delete(hash);
      } else {
        this.history.set(hash, keptOutcome(item.entry, removal.outcome));
        this.count(removal.outcome);
      }
      if (removal.unjournalled || deleted.has(hash)) this.account.noteDeleted(hash);
      else this.account.noteGone(hash);
    }
    if (this.account.isBehind) this.commits.wake();
  }

  private count(outcome: PoolOutcome): void {
    if (outcome.status === "replaced") this.replacedTotal++;
    else this.droppedTotal++;
    if (outcome === UNDERPRICED) this.evictedTotal++;
  }

  /** Deletes what left before it may be brought back; waits until a block's have left, too. */
  private async flushRemovals(): Promise<void> {
    try {
      await this.account.flush((hashes) => this.history.outcomesOf(hashes));
    } catch (error) {
      this.ports.onJournalFault(error);
    }
    while (this.mined !== undefined) await this.mined.ended;
  }

  /** Lowest price that can get in now: what pays less is refused before its costly recovery. */
  private priceToReachAtoken(): Atoken {
    const { totalCount, queuedCount, prices } = this.contents;
    const isOpen = totalCount < this.limits.totalCount || queuedCount > 0;
    const cheapest = isOpen ? undefined : prices.cheapest();
    return cheapest === undefined ? 0n : cheapest.priceAtoken;
  }

  private async load(): Promise<void> {
    const stored = await this.takeStored();
    const draft = this.newDraft();
    for (const [from, own] of bySender(stored)) draft.restore(from, own.map(wholeEntry));
    this.apply(draft);
  }

  /** What of the journal comes back, in order of receipt; what becomes of the rest is noted. */
  private async takeStored(): Promise<readonly StoredEntry[]> {
    const { journal, rules, state } = this.ports;
    const { totalBytes, totalCount } = this.limits;
    const { entries, refused } = await readStoredPool(journal, { rules, totalBytes });
    this.intakes.startAfter(journal.lastSequence());
    const held = new Set(entries.map(({ tx }) => tx.hash));
    for (const [hash, outcome] of journal.outcomes()) {
      if (!held.has(hash)) this.history.set(hash, outcome);
    }
    for (const [entry, outcome] of refused) this.dropStored(entry, outcome);
    const valid = entries.filter((one) => !refused.has(one) && !this.isForgotten(one));
    const gone = beyondRoom(valid, { state, totalBytes, totalCount });
    for (const [entry, outcome] of gone) this.dropStored(entry, outcome);
    return valid.filter((one) => !gone.has(one));
  }

  /** Its nonce is used, maybe by itself: in a block that is deleted, or that never came. Nobody knows. */
  private isForgotten({ tx, from }: StoredEntry): boolean {
    if (this.ports.oldestHeight() <= 1 || tx.nonce >= this.ports.state.nonce(from)) return false;
    this.account.noteGone(tx.hash);
    return true;
  }

  /** Of what does not come back; the outcome is undefined where it is not known. */
  private dropStored(entry: StoredEntry, outcome: PoolOutcome | undefined): void {
    if (outcome !== undefined) this.history.set(entry.tx.hash, keptOutcome(entry, outcome));
    if (outcome !== undefined) this.count(outcome);
    this.account.noteGone(entry.tx.hash);
  }
}
