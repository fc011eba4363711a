/**
 * The pool's port to its journal on disk, and the account of what that journal has. A hash is
 * answered only after its entry is durable, and a transaction that made room for others is gone
 * only after that is; the journal itself tells mined transactions by the chain.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import { type KeptOutcome, keptOutcome } from "./outcome-history.js";
import type { DroppedEntry } from "./pool-draft.js";
import type { PoolEntry } from "./order/pool-entry.js";
import { PoolError } from "./pool-error.js";
import type { TransactionOrigin } from "./pool-port.js";

/** One admitted transaction as the journal keeps it. */
export interface PoolJournalEntry {
  /** By the kind of the transaction (`hashOfRaw`): the key. */
  readonly hash: Hash32;
  readonly raw: Uint8Array;
  /** Sender as recovered at admission, so that a start need not recover it again. */
  readonly from: Address;
  /** Unix milliseconds. */
  readonly receivedAtMs: number;
  /**
   * Order of receipt: above that of every entry that was written before it, and of those before it in
   * its own write. A safe integer.
   */
  readonly sequence: number;
}

/** Storage of the journal. */
export interface PoolJournal {
  /**
   * Adds the entries and deletes the dropped ones in one atomic write that is on disk when the
   * promise resolves. No hash is in both.
   */
  append(
    entries: readonly PoolJournalEntry[],
    dropped: ReadonlyMap<Hash32, KeptOutcome>,
  ): Promise<void>;
  /**
   * Deletes entries by hash; unknown hashes are ignored.
   * @param outcomes what became of them, as far as it is known; the last ones are kept
   */
  remove(hashes: readonly Hash32[], outcomes: ReadonlyMap<Hash32, KeptOutcome>): Promise<void>;
  /** What became of the last ones that were removed, oldest first; complete after `load`. */
  outcomes(): ReadonlyMap<Hash32, KeptOutcome>;
  /**
   * The highest number in the journal, with entries that wait for nothing any more; -1 for none; complete
   * after `load`. A number that is given out again would take the place of the record that has it.
   */
  lastSequence(): number;
  /** Everything in the journal that waits, in any order. */
  load(): AsyncIterable<PoolJournalEntry>;
}

/** An entry on its way into the pool. */
export interface Admission {
  readonly entry: PoolEntry;
  readonly origin: TransactionOrigin;
}

/** What was found about a group's entries. */
export interface Judgement {
  /** For each entry: its hash, or why it is refused. */
  readonly answers: readonly (Hash32 | Error)[];
  /** Entries that lost their place to what pays more. */
  readonly outbid: ReadonlySet<PoolEntry>;
}

/** What the journal has of the pool, and what is still to be deleted from it. */
export class JournalAccount {
  /** Left the pool outside a block; their entries are still to be deleted. */
  private readonly leaving = new Set<Hash32>();
  /** In the pool and not in the journal: peers sent them. */
  private readonly unwritten = new Set<Hash32>();
  /** Durable appends since the start. */
  appendsTotal = 0;

  constructor(private readonly journal: PoolJournal) {}

  /** True when entries are to be deleted. */
  get isBehind(): boolean {
    return this.leaving.size > 0;
  }

  /** True for a transaction of the pool that the journal does not have. */
  isUnwritten(hash: Hash32): boolean {
    return this.unwritten.has(hash);
  }

  /** Writes what a group brings in, and what goes for it. */
  async append(entries: readonly PoolEntry[], dropped: readonly DroppedEntry[]): Promise<void> {
    if (entries.length === 0 && dropped.length === 0) return;
    this.appendsTotal++;
    await this.journal.append(
      entries.map(({ tx, from, receivedAtMs, sequence }) => {
        return { hash: tx.hash, raw: tx.raw, from, receivedAtMs, sequence };
      }),
      new Map(dropped.map(({ entry, outcome }) => [entry.tx.hash, keptOutcome(entry, outcome)])),
    );
    for (const { tx } of entries) {
      this.leaving.delete(tx.hash);
      this.unwritten.delete(tx.hash);
    }
    for (const { entry } of dropped) this.leaving.delete(entry.tx.hash);
  }

  /**
   * What a group has to bring into the journal: what clients sent and is admitted, and what they
   * sent and the pool has so far only from peers. What lost its place to a dearer one has not: written
   * now, it would be the later of both, and take the place at a start.
   */
  toBeWritten(
    group: readonly Admission[],
    { answers, outbid }: Judgement,
  ): ReadonlyMap<Hash32, PoolEntry> {
    const written = new Map<Hash32, PoolEntry>();
    const fromPeers = new Set<Hash32>();
    for (const [index, { entry, origin }] of group.entries()) {
      const { hash } = entry.tx;
      const answer = answers[index];
      const isAdmitted = !(answer instanceof Error);
      const isHeld = answer instanceof PoolError && answer.code === "ALREADY_KNOWN";
      if (origin === "peer") {
        if (isAdmitted) fromPeers.add(hash);
      } else if (written.has(hash)) {
        // The first copy stays: its place and its sequence are those of the record's key.
      } else if (isAdmitted || (isHeld && (fromPeers.has(hash) || this.unwritten.has(hash)))) {
        written.set(hash, entry);
      }
    }
    for (const { tx } of outbid) written.delete(tx.hash);
    return written;
  }

  /** What of a group comes in, or was outbid by the group itself, without being written. */
  noteUnwritten(
    group: readonly Admission[],
    { answers, outbid }: Judgement,
    written: ReadonlyMap<Hash32, PoolEntry>,
  ): void {
    for (const [index, { entry }] of group.entries()) {
      const { hash } = entry.tx;
      const isNew = !(answers[index] instanceof Error) || outbid.has(entry);
      if (!isNew || written.has(hash)) continue;
      this.leaving.delete(hash);
      this.unwritten.add(hash);
    }
  }

  /** A transaction that may be in the journal is not in the pool. */
  noteGone(hash: Hash32): void {
    if (!this.unwritten.delete(hash)) this.leaving.add(hash);
  }

  /** The same, and the journal has let go of it already. */
  noteDeleted(hash: Hash32): void {
    this.unwritten.delete(hash);
    this.leaving.delete(hash);
  }

  /**
   * Deletes what left the pool. What fails is tried again with the next call: at a start the
   * entries would only be judged once more.
   */
  async flush(
    outcomesOf: (hashes: readonly Hash32[]) => ReadonlyMap<Hash32, KeptOutcome>,
  ): Promise<void> {
    const hashes = [...this.leaving];
    if (hashes.length === 0) return;
    await this.journal.remove(hashes, outcomesOf(hashes));
    for (const hash of hashes) this.leaving.delete(hash);
  }
}
