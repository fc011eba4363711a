/**
 * What pages keep of the journals of blocks, within a bound of bytes: a full block is read once for all
 * of its transactions, and not again for each.
 */
import { LRUCache } from "lru-cache";
import type { BalanceChange } from "../../chain/balance-change.js";
import type { Hash32 } from "../../chain/hex.js";
import type { JournaledBlock, JournaledTransaction } from "../../rpc-client/journal-codec.js";

/** A transaction of a journal without calldata and logs, which are nearly all of a large one. */
export type KeptTransaction = Omit<JournaledTransaction, "input" | "logs">;

/** A block of which pages tell what moved. */
export interface KeptJournal
  extends Pick<JournaledBlock, "blockChanges" | "mintedAtoken" | "burnedAtoken"> {
  readonly transactions: readonly KeptTransaction[];
}

/** Of a block whose journal is longer than pages are made of. */
export const TOO_LARGE = "too large";

/** Bytes of all that is kept: some blocks as full as they can be, and very many usual ones. */
const MAX_BYTES = 8 * 1024 * 1024;

/** Memory of a transaction, and of a change, beside texts: objects, numbers, hashes and addresses. */
const TRANSACTION_BYTES = 1_024;
const CHANGE_BYTES = 320;

/** Memory of a character; those of most texts take half of it. */
const CHARACTER_BYTES = 2;

/** Journals by the hash of their block, which names what is in it. */
export class KeptJournals {
  private readonly journals = new LRUCache<Hash32, KeptJournal | typeof TOO_LARGE>({
    maxSize: MAX_BYTES,
    sizeCalculation: sizeBytesOf,
  });

  /** The journal, or that it is too large, if that is known. */
  get(hash: Hash32): KeptJournal | typeof TOO_LARGE | undefined {
    return this.journals.get(hash);
  }

  /** Keeps it, where it is not longer than all of them may be. */
  set(hash: Hash32, journal: KeptJournal | typeof TOO_LARGE): void {
    this.journals.set(hash, journal);
  }
}

/** What pages need of a block's journal. */
export function keptOf(block: JournaledBlock): KeptJournal {
  const { blockChanges, mintedAtoken, burnedAtoken } = block;
  const transactions = block.transactions.map(({ input: _input, logs: _logs, ...rest }) => rest);
  return { blockChanges, mintedAtoken, burnedAtoken, transactions };
}

function sizeBytesOf(journal: KeptJournal | typeof TOO_LARGE): number {
  if (journal === TOO_LARGE) return TRANSACTION_BYTES;
  const { blockChanges, transactions } = journal;
  return transactions.reduce(
    (sum, { changes, cosmos }) =>
      sum + TRANSACTION_BYTES + changesBytes(changes) + textBytes(cosmos),
    TRANSACTION_BYTES + changesBytes(blockChanges),
  );
}

function changesBytes(changes: readonly BalanceChange[]): number {
  return changes.reduce((sum, { tracePath = "", error = "" }) => {
    const characters = tracePath.length + error.length;
    return sum + CHANGE_BYTES + CHARACTER_BYTES * characters;
  }, 0);
}

function textBytes(cosmos: KeptTransaction["cosmos"]): number {
  if (cosmos === undefined) return 0;
  return CHARACTER_BYTES * [cosmos.memo, ...cosmos.messages].join("").length;
}
