/**
 * The pool's port to its journal on disk. A hash is answered only after its entry is durable; the
 * journal itself tells mined transactions by the chain and never offers them again.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import type { TransactionStatus } from "./pool-port.js";

/** One admitted transaction as the journal keeps it. */
export interface PoolJournalEntry {
  /** keccak256(raw): the key. */
  readonly hash: Hash32;
  readonly raw: Uint8Array;
  /** Sender as recovered at admission, so that a start need not recover it again. */
  readonly from: Address;
  /** Unix milliseconds. */
  readonly receivedAtMs: number;
  /** Order of receipt: above every other entry's in the journal at the time. A safe integer. */
  readonly sequence: number;
}

/** Fate of a transaction that left the pool without being mined. */
type PoolJournalOutcome = Extract<TransactionStatus, { status: "replaced" | "dropped" }>;

/** Storage of the journal. */
export interface PoolJournal {
  /** Adds the entries in one atomic write that is on disk when the promise resolves. */
  append(entries: readonly PoolJournalEntry[]): Promise<void>;
  /**
   * Deletes entries by hash; unknown hashes are ignored.
   * @param outcomes what became of them, as far as it is known; the last ones are kept
   */
  remove(
    hashes: readonly Hash32[],
    outcomes: ReadonlyMap<Hash32, PoolJournalOutcome>,
  ): Promise<void>;
  /** What became of the last ones that were removed, oldest first; complete after `load`. */
  outcomes(): ReadonlyMap<Hash32, PoolJournalOutcome>;
  /** Everything in the journal, in any order. */
  load(): AsyncIterable<PoolJournalEntry>;
}
