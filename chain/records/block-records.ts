/**
 * A block as its records: what the node has stored, as it is, for whoever reads many blocks and all that is
 * in them. As JSON they are three times as long, and most of the work of both sides.
 */
import type { BalanceChange, BlockJournal } from "../balance-change.js";
import type { BlockTransaction } from "../block.js";
import type { MinedCosmosTransaction } from "../cosmos/cosmos-result.js";
import { readRlp } from "../encoding/rlp-reader.js";
import { ChainError } from "../errors.js";
import type { Steps } from "../steps/steps.js";
import type { Receipt } from "../receipt.js";
import { readTransaction } from "./block-items.js";
import { readCosmosTransaction } from "./cosmos-items.js";
import { readOutline, type StoredOutline } from "./outline.js";
import { hashAt, readBlockChanges, readJournalPage, readReceiptPage } from "./pages.js";

/** Hashes, transactions, receipts and balance changes of neighbouring transactions. */
export type PageRecordBytes = readonly [
  hashes: Uint8Array,
  transactions: Uint8Array,
  receipts: Uint8Array,
  journal: Uint8Array,
];

/** The records of one block. */
export interface BlockRecordBytes {
  readonly outline: Uint8Array;
  /** Changes that no transaction made. */
  readonly changes: Uint8Array;
  /** Transactions of the Cosmos side; as the pages, they are read when they come to their turn. */
  readonly cosmos: Iterable<Uint8Array>;
  readonly pages: Iterable<PageRecordBytes>;
}

/** An EVM transaction with what came of it. */
export interface RecordedTransaction {
  readonly mined: BlockTransaction;
  readonly receipt: Receipt;
  readonly changes: readonly BalanceChange[];
}

/** What the records say. */
export interface RecordedBlock {
  readonly outline: StoredOutline;
  readonly transactions: readonly RecordedTransaction[];
  readonly cosmos: readonly MinedCosmosTransaction[];
  readonly changes: Omit<BlockJournal, "transactions" | "height">;
}

/**
 * Reads the records of a block, which may come from anywhere, in steps of a page: each in itself, and that
 * they fit together; not that they are of this chain.
 * @throws INVALID_RLP and other ChainErrors
 */
export function* recordedBlockSteps(bytes: BlockRecordBytes): Steps<RecordedBlock> {
  const outline = readRlp(bytes.outline, readOutline);
  const transactions: RecordedTransaction[] = [];
  for (const page of bytes.pages) {
    addPage(transactions, page);
    yield;
  }
  const cosmos = Array.from(bytes.cosmos, (record) => readRlp(record, readCosmosTransaction));
  const isWhole =
    transactions.length === outline.transactionCount &&
    cosmos.length === outline.cosmosPlaces.length;
  if (!isWhole) throw unfit();
  return { outline, transactions, cosmos, changes: readRlp(bytes.changes, readBlockChanges) };
}

function addPage(
  transactions: RecordedTransaction[],
  [hashes, mined, receipts, journal]: PageRecordBytes,
): void {
  let item = 0;
  const read = readRlp(mined, (page) =>
    page.items((reader) => readTransaction(reader, hashAt(hashes, item++))),
  );
  const made = readRlp(receipts, readReceiptPage).receipts;
  const { changes } = readRlp(journal, (page) => readJournalPage(page, read.length));
  if (made.length !== read.length) throw unfit();
  for (const [index, one] of read.entries()) {
    const receipt = made[index];
    const own = changes[index];
    if (receipt === undefined || own === undefined) throw unfit();
    transactions.push({ mined: one, receipt, changes: own });
  }
}

function unfit(): ChainError {
  return new ChainError("INVALID_RLP", "the records of a block do not fit together");
}
