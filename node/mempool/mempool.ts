/**
 * The mempool: admits transactions, keeps them in nonce order per sender and offers them to
 * blocks by price. A hash is answered, served and offered only after its journal entry is
 * durable; admissions share journal writes (group commit). All changes go through a `PoolDraft`.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import { decodeTransaction } from "../../chain/transaction.js";
import type { Clock } from "../../runtime/clock.js";
import type { EventBus, PendingTransaction, TransactionLocation } from "../event-bus.js";
import { checkCallGas, type PoolRules, type StateAtHead } from "./admission.js";
import { GroupCommit } from "./group-commit.js";
import { Intake } from "./intake.js";
import { type BlockLimits, BlockSelection } from "./ordering.js";
import { OutcomeHistory } from "./outcome-history.js";
import { PoolContents } from "./pool-contents.js";
import { PoolDraft } from "./pool-draft.js";
import { createPoolEntry, type PoolEntry } from "./pool-entry.js";
import { nodeHalted, PoolError, poolFull, shortfallText } from "./pool-error.js";
import type { PoolJournal } from "./pool-journal.js";
import { DEFAULT_POOL_LIMITS, type PoolLimits } from "./pool-limits.js";
import type { PoolErrorCode, SenderContent, TransactionPool } from "./pool-port.js";
import type { TransactionOrigin, TransactionStatus } from "./pool-port.js";
import { removalOf, type MinedTransaction } from "./removal.js";
import type { RemovedEntry } from "./sender-draft.js";
import type { SenderBounds } from "./sender-queue.js";
import { InlineRecovery, type SenderRecovery } from "./sender-recovery.js";

/** What the pool needs from the node. */
export interface MempoolPorts {
  readonly state: StateAtHead;
  readonly journal: PoolJournal;
  /** Gets `pendingTransactions`. */
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly rules: PoolRules;
  readonly limits?: Partial<PoolLimits>;
  /** Where a transaction was mined; the chain's index. */
  locate(hash: Hash32): TransactionLocation | undefined;
  /** Why nothing may be admitted now; undefined in normal operation. */
  haltReason(): string | undefined;
  /**
   * Told of a failed journal write, or of a state that cannot be read; the pool itself goes on
   * and tries again with the next call.
   */
  onJournalFault(error: unknown): void;
  /** The default recovers on this thread. */
  readonly recovery?: SenderRecovery;
}

/** What a block changed, as far as the pool is concerned. */
export interface HeadChange {
  /** The block's transactions, in order. */
  readonly transactions: readonly MinedTransaction[];
  /** Accounts whose balance or nonce changed; the transactions' senders may be left out. */
  readonly touched: Iterable<Address>;
}

/** Gauges and, since the start, counters for metrics. */
export interface PoolStats {
  readonly pendingCount: number;
  readonly queuedCount: number;
  /** Raw bytes of all transactions in the pool. */
  readonly sizeBytes: number;
  readonly waitingCount: number;
  readonly admittedTotal: number;
  readonly replacedTotal: number;
  readonly droppedTotal: number;
  readonly journalAppendsTotal: number;
  readonly refusedTotal: ReadonlyMap<PoolErrorCode, number>;
}

/** Most transactions that one journal write takes from several calls. */
const GROUP_SIZE = 4_096;

type Answer = Hash32 | PoolError;

/** An entry on its way into the pool. */
interface Admission {
  readonly entry: PoolEntry;
  readonly origin: TransactionOrigin;
}

/** The node's only pool. Reads are synchronous and show durable transactions only. */
export class Mempool implements TransactionPool {
  private readonly limits: PoolLimits;
  private readonly contents = new PoolContents();
  private readonly history: OutcomeHistory;
  private readonly intake: Intake;
  private readonly commits: GroupCommit<Admission, Answer>;
  /** Left the pool outside a block; their journal entries are still to be deleted. */
  private readonly unjournal = new Set<Hash32>();
  /** In the pool and not in the journal: peers sent them. */
  private readonly unwritten = new Set<Hash32>();
  private readonly refusedTotal = new Map<PoolErrorCode, number>();
  /** Rises with every change of the contents; a draft of another revision is stale. */
  private revision = 0;
  private waitingCount = 0;
  private waitingBytes = 0;
  private admittedTotal = 0;
  private replacedTotal = 0;
  private droppedTotal = 0;
  private journalAppendsTotal = 0;
  private closed = false;

  private constructor(private readonly ports: MempoolPorts) {
    this.limits = { ...DEFAULT_POOL_LIMITS, ...ports.limits };
    this.history = new OutcomeHistory(this.limits.outcomeCount);
    this.intake = new Intake({
      clock: ports.clock,
      rules: ports.rules,
      isKnown: (hash, origin) => {
        const isJournalled = !this.unwritten.has(hash);
        return this.contents.get(hash) !== undefined && (isJournalled || origin === "peer");
      },
      recovery: ports.recovery ?? new InlineRecovery(),
    });
    this.commits = new GroupCommit((group) => this.commitGroup(group), GROUP_SIZE);
  }

  /**
   * Loads the journal, re-validates it against the committed state and opens the pool.
   * @throws INVALID_TRANSACTION when the journal is damaged
   */
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
    const sizeBytes = raws.reduce((sum, raw) => sum + raw.length, 0);
    const refusal = this.refusal(raws.length, sizeBytes);
    if (refusal !== undefined) return raws.map(() => this.counted(refusal));
    this.waitingCount += raws.length;
    this.waitingBytes += sizeBytes;
    try {
      const { prepared, committed } = await this.intake.take(raws, origin, (items) => {
        const entries = items.filter((item): item is PoolEntry => !(item instanceof PoolError));
        const admissions = entries.map((entry) => ({ entry, origin }));
        // The promise travels in an object: the next call need not wait for this one's commit.
        return { prepared: items, committed: this.commits.add(admissions) };
      });
      const answers = (await committed).values();
      return prepared.map((item) => {
        if (item instanceof PoolError) return this.counted(item);
        const answer = answers.next().value ?? nodeHalted("no answer from the group commit");
        return answer instanceof PoolError ? this.counted(answer) : answer;
      });
    } finally {
      this.waitingCount -= raws.length;
      this.waitingBytes -= sizeBytes;
    }
  }

  /** The transaction if it is in the pool, executable or queued. */
  get(hash: Hash32): PendingTransaction | undefined {
    return this.contents.get(hash);
  }

  /** The same by the SHA-256 of the SDK Tx around it. */
  getBySdkHash(sdkHash: Hash32): PendingTransaction | undefined {
    return this.contents.getBySdkHash(sdkHash);
  }

  /** See `TransactionPool`; the account's own nonce when the pool holds nothing executable. */
  pendingNonce(address: Address): bigint {
    const nonce = this.ports.state.nonce(address);
    const end = this.contents.sender(address)?.bounds.pendingEnd ?? nonce;
    return end > nonce ? end : nonce;
  }

  /** `missingNonce` of a queued one is the first nonce of its sender that is not executable. */
  status(hash: Hash32): TransactionStatus {
    const entry = this.contents.get(hash);
    if (entry !== undefined) {
      const bounds = this.contents.sender(entry.from)?.bounds;
      const missingNonce = bounds?.pendingEnd ?? entry.tx.nonce;
      if (entry.tx.nonce < missingNonce) return { status: "pending" };
      const reason = entry.tx.nonce === missingNonce ? this.waitsFor(entry, bounds) : undefined;
      return { status: "queued", missingNonce, ...(reason === undefined ? {} : { reason }) };
    }
    const outcome = this.history.get(hash);
    if (outcome !== undefined) return outcome;
    const location = this.ports.locate(hash);
    if (location === undefined) return { status: "unknown" };
    return { status: "included", height: location.height, index: location.index };
  }

  /** See `TransactionPool`. */
  counts(): { readonly pending: number; readonly queued: number } {
    const { totalCount, queuedCount } = this.contents;
    return { pending: totalCount - queuedCount, queued: queuedCount };
  }

  /** See `TransactionPool`; walks the whole pool. */
  content(): ReadonlyMap<Address, SenderContent> {
    const content = new Map<Address, SenderContent>();
    for (const queue of this.contents.allSenders()) {
      content.set(queue.address, { pending: queue.pending(), queued: queue.queued() });
    }
    return content;
  }

  /** See `TransactionPool`. */
  contentFrom(address: Address): SenderContent {
    const queue = this.contents.sender(address);
    return { pending: queue?.pending() ?? [], queued: queue?.queued() ?? [] };
  }

  /** Offers the executable transactions to one block, without removing them. */
  takeForBlock(limits: BlockLimits): BlockSelection {
    return new BlockSelection(this.contents.allSenders(), limits, (entry) =>
      this.dropIfTooLarge(entry),
    );
  }

  /**
   * Adjusts the pool to a block, synchronously. Call it after the block's atomic write, when
   * `state` reads the new head. Only senders that the block touched are looked at.
   */
  onBlockCommitted(change: HeadChange): void {
    const draft = this.draft();
    for (const { from } of change.transactions) draft.adjust(from);
    for (const address of change.touched) draft.adjust(address);
    draft.expire(this.ports.clock.nowMs() - this.limits.queuedLifetimeMs);
    this.apply(draft, change.transactions);
    for (const { hash } of change.transactions) this.history.delete(hash);
  }

  /**
   * Takes out a transaction that can never be executed, whatever the pool thinks of it; later
   * ones of its sender become queued. Nothing happens when it is not in the pool.
   */
  drop(hash: Hash32, reason: string): void {
    const entry = this.contents.get(hash);
    if (entry === undefined) return;
    const draft = this.draft();
    draft.remove(entry, { status: "dropped", reason });
    this.apply(draft, []);
  }

  /** Gauges and counters. */
  stats(): PoolStats {
    const { pending, queued } = this.counts();
    const { waitingCount, admittedTotal, replacedTotal, droppedTotal, journalAppendsTotal } = this;
    return {
      pendingCount: pending,
      queuedCount: queued,
      sizeBytes: this.contents.totalBytes,
      waitingCount,
      admittedTotal,
      replacedTotal,
      droppedTotal,
      journalAppendsTotal,
      refusedTotal: this.refusedTotal,
    };
  }

  /** Refuses what comes from now on and waits for what is under way. */
  async close(): Promise<void> {
    this.closed = true;
    await this.intake.idle();
    await this.commits.idle();
  }

  private refusal(count: number, sizeBytes: number): PoolError | undefined {
    if (this.closed) return nodeHalted("it is shutting down");
    const reason = this.ports.haltReason();
    if (reason !== undefined) return nodeHalted(reason);
    const tooMany = this.waitingCount + count > this.limits.waitingCount;
    const tooLarge = this.waitingBytes + sizeBytes > this.limits.waitingBytes;
    return tooMany || tooLarge ? poolFull() : undefined;
  }

  /** Why a transaction whose turn it is does not become executable. */
  private waitsFor(entry: PoolEntry, bounds: SenderBounds | undefined): string {
    const { costAtoken } = entry;
    const queuedCostAtoken = bounds?.pendingCostAtoken ?? 0n;
    const balanceAtoken = this.ports.state.balanceAtoken(entry.from);
    if (queuedCostAtoken + costAtoken <= balanceAtoken) return "the account's limit is reached";
    const replacedCostAtoken = undefined;
    return shortfallText({ balanceAtoken, costAtoken, queuedCostAtoken, replacedCostAtoken });
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
    try {
      let staged = this.stage(entries);
      const written = toBeWritten(group, staged.answers, this.unwritten);
      if (written.size > 0) await this.append([...written.values()]);
      for (const [index, { tx }] of entries.entries()) {
        if (!(staged.answers[index] instanceof PoolError)) this.unjournal.delete(tx.hash);
      }
      if (staged.revision !== this.revision) staged = this.restage(entries, staged.answers);
      this.noteUnwritten(entries, staged.answers, written);
      this.apply(staged.draft, []);
      for (const hash of written.keys()) {
        // Refused at a newer head, or a peer's that left while it was written for a client.
        if (this.contents.get(hash) === undefined) this.unjournal.add(hash);
      }
      if (this.unjournal.size > 0) this.commits.wake();
      this.admittedTotal += staged.answers.filter((item) => !(item instanceof PoolError)).length;
      return staged.answers;
    } catch (error) {
      this.ports.onJournalFault(error);
      // Part of a failed write may have reached the disk.
      for (const { tx } of entries) {
        if (this.contents.get(tx.hash) === undefined) this.unjournal.add(tx.hash);
      }
      // All of them, because later ones were judged by those that are now not admitted.
      const answer = nodeHalted("the pool cannot write its journal", error);
      return entries.map(() => answer);
    }
  }

  /** Keeps account of what the journal does not have. */
  private noteUnwritten(
    entries: readonly PoolEntry[],
    answers: readonly Answer[],
    written: ReadonlyMap<Hash32, PoolEntry>,
  ): void {
    for (const [index, { tx }] of entries.entries()) {
      const isNew = !(answers[index] instanceof PoolError);
      if (isNew && !written.has(tx.hash)) this.unwritten.add(tx.hash);
    }
    for (const hash of written.keys()) this.unwritten.delete(hash);
  }

  private append(entries: readonly PoolEntry[]): Promise<void> {
    this.journalAppendsTotal++;
    return this.ports.journal.append(
      entries.map(({ tx, from, receivedAtMs, sequence }) => {
        return { hash: tx.hash, raw: tx.raw, from, receivedAtMs, sequence };
      }),
    );
  }

  private draft(): PoolDraft {
    const { state, rules } = this.ports;
    return new PoolDraft({ contents: this.contents, state, rules, limits: this.limits });
  }

  private stage(entries: readonly PoolEntry[]): {
    draft: PoolDraft;
    revision: number;
    answers: readonly Answer[];
  } {
    const { revision } = this;
    const draft = this.draft();
    const answers = entries.map((entry) => draft.admit(entry) ?? entry.tx.hash);
    return { draft, revision, answers };
  }

  /**
   * A block came in during the journal write: what was accepted is judged again at the new head.
   */
  private restage(
    entries: readonly PoolEntry[],
    former: readonly Answer[],
  ): { draft: PoolDraft; revision: number; answers: readonly Answer[] } {
    const { revision } = this;
    const draft = this.draft();
    const answers = entries.map((entry, index) => {
      const answer = former[index];
      if (answer === undefined || answer instanceof PoolError) {
        return answer ?? nodeHalted("no answer from the group commit");
      }
      return draft.admit(entry) ?? entry.tx.hash;
    });
    return { draft, revision, answers };
  }

  /** Makes a draft visible, records what became of the removed ones and tells the bus. */
  private apply(draft: PoolDraft, mined: readonly MinedTransaction[]): void {
    const { removed, executable } = draft.commit(this.ports.clock.nowMs());
    this.revision++;
    this.recordRemovals(removed, mined);
    if (executable.length > 0) this.ports.bus.emit("pendingTransactions", executable);
  }

  private recordRemovals(
    removed: readonly RemovedEntry[],
    mined: readonly MinedTransaction[],
  ): void {
    const resolve = removalOf(mined, (hash) => this.ports.locate(hash) !== undefined);
    for (const item of removed) {
      const { hash } = item.entry.tx;
      const removal = resolve(item);
      if (removal.outcome === undefined) {
        this.history.delete(hash);
      } else {
        this.history.set(hash, removal.outcome);
        if (removal.outcome.status === "replaced") this.replacedTotal++;
        else this.droppedTotal++;
      }
      const isWritten = !this.unwritten.delete(hash);
      if (isWritten && !removal.unjournalled) this.unjournal.add(hash);
    }
    if (this.unjournal.size > 0) this.commits.wake();
  }

  /**
   * Deletes journal entries of transactions that left outside a block, before the group that may
   * bring one of them back is written. A failure is tried again with the next group: at a start
   * the entries would only be judged once more.
   */
  private async flushRemovals(): Promise<void> {
    const hashes = [...this.unjournal];
    if (hashes.length === 0) return;
    try {
      await this.ports.journal.remove(hashes, this.history.outcomesOf(hashes));
      for (const hash of hashes) this.unjournal.delete(hash);
    } catch (error) {
      this.ports.onJournalFault(error);
    }
  }

  /** A plain transfer whose recipient has become a contract may want more gas than a block has. */
  private dropIfTooLarge(entry: PoolEntry): void {
    const { rules, state } = this.ports;
    const refused = checkCallGas(entry.tx, rules, state);
    if (refused !== undefined) this.drop(entry.tx.hash, refused.message);
  }

  private async load(): Promise<void> {
    // By hash, because one that was dropped and came back may have been written twice.
    const entries = new Map<Hash32, PoolEntry>();
    for await (const { hash, raw, from, receivedAtMs, sequence } of this.ports.journal.load()) {
      const tx = decodeTransaction(raw);
      if (tx.hash !== hash) {
        throw new PoolError("INVALID_TRANSACTION", "the pool's journal is damaged", {
          details: { hash },
        });
      }
      this.intake.startAfter(sequence);
      if ((entries.get(hash)?.sequence ?? -1) < sequence) {
        entries.set(hash, createPoolEntry(tx, from, { sequence, receivedAtMs }));
      }
    }
    for (const [hash, outcome] of this.ports.journal.outcomes()) {
      if (!entries.has(hash)) this.history.set(hash, outcome);
    }
    const bySender = new Map<Address, PoolEntry[]>();
    const inOrder = [...entries.values()].toSorted((left, right) => left.sequence - right.sequence);
    for (const entry of inOrder) {
      const own = bySender.get(entry.from);
      if (own === undefined) bySender.set(entry.from, [entry]);
      else own.push(entry);
    }
    const draft = this.draft();
    for (const [from, own] of bySender) draft.restore(from, own);
    this.apply(draft, []);
  }
}

/**
 * What a group has to bring into the journal: what clients sent and is admitted, and what they
 * sent and the pool has so far only from peers.
 */
function toBeWritten(
  group: readonly Admission[],
  answers: readonly Answer[],
  unwritten: ReadonlySet<Hash32>,
): ReadonlyMap<Hash32, PoolEntry> {
  const written = new Map<Hash32, PoolEntry>();
  const fromPeers = new Set<Hash32>();
  for (const [index, { entry, origin }] of group.entries()) {
    const { hash } = entry.tx;
    const isAdmitted = !(answers[index] instanceof PoolError);
    if (origin === "peer") {
      if (isAdmitted) fromPeers.add(hash);
    } else if (isAdmitted || fromPeers.has(hash) || unwritten.has(hash)) {
      written.set(hash, entry);
    }
  }
  return written;
}
