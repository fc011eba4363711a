/**
 * Pages: what belongs to some neighbouring transactions of a block, of each kind in a record of its own;
 * and what the block did beside them.
 */
import type { BalanceChange, BlockJournal, TransactionJournal } from "../balance-change.js";
import type { BlockTransaction } from "../block.js";
import type { AbciEvent } from "../consensus/abci-types.js";
import { encodeRlp } from "../encoding/rlp-writer.js";
import { readRlp, RlpReader } from "../encoding/rlp-reader.js";
import { present } from "../errors.js";
import { bytesToHash32, type Hash32 } from "../hex.js";
import type { Log, Receipt } from "../receipt.js";
import type { Steps } from "../steps/steps.js";
import {
  changeItem,
  packBloom,
  readChange,
  readLog,
  readLogs,
  readReceiptFields,
  receiptFields,
  unpackBloom,
} from "./block-items.js";
import { eventItem, readEvent } from "./cosmos-items.js";

const HASH_BYTES = 32;

/** The hashes of transactions, one behind the other. */
export function encodeHashPage(transactions: readonly BlockTransaction[]): Buffer {
  const bytes = Buffer.allocUnsafe(transactions.length * HASH_BYTES);
  for (const [item, { tx }] of transactions.entries()) {
    bytes.write(tx.hash.slice(2), item * HASH_BYTES, "hex");
  }
  return bytes;
}

/** One of them. Throws INVALID_HEX where it is not there. */
export function hashAt(page: Uint8Array, item: number): Hash32 {
  return bytesToHash32(page.subarray(item * HASH_BYTES, (item + 1) * HASH_BYTES));
}

/** The count of logs before the page, then the receipts, each with its bloom behind its fields. */
export function encodeReceiptPage(receipts: readonly Receipt[], firstLogIndex: number): Uint8Array {
  return encodeRlp([
    firstLogIndex,
    ...receipts.map((receipt) => [...receiptFields(receipt), packBloom(receipt)]),
  ]);
}

/** The receipts of a page, and how many logs of the block are before them. */
export interface ReceiptPage {
  readonly firstLogIndex: number;
  readonly receipts: readonly Receipt[];
}

/** Reads what `encodeReceiptPage` wrote. Throws INVALID_RLP. */
export function readReceiptPage(reader: RlpReader): ReceiptPage {
  return reader.list(() => {
    const firstLogIndex = reader.number();
    const receipts: Receipt[] = [];
    while (reader.hasMore) receipts.push(readStoredReceipt(reader));
    return { firstLogIndex, receipts };
  });
}

/** Reads one receipt of a page; its bloom is unpacked when somebody asks for it. Throws INVALID_RLP. */
function readStoredReceipt(reader: RlpReader, logsOf = readLogs): Receipt {
  return reader.list(() => {
    let packed: Uint8Array | undefined;
    const bloomOf = () => unpackBloom(present(packed, "packed bloom"));
    const receipt = readReceiptFields(reader, bloomOf, logsOf);
    packed = reader.bytes();
    return receipt;
  });
}

/** Logs that are decoded in one step: a tenth of a millisecond. */
const LOGS_AT_ONCE = 64;

/** Reads one receipt as it is stored, in steps of some of its logs each. Throws INVALID_RLP. */
export function* storedReceiptSteps(stored: Uint8Array): Steps<Receipt> {
  const logs: Log[] = [];
  let encoded: Uint8Array | undefined;
  const receipt = readRlp(stored, (whole) =>
    readStoredReceipt(whole, (reader) => {
      encoded = reader.encoded();
      return logs;
    }),
  );
  const reader = new RlpReader(present(encoded, "encoded logs"));
  reader.enter();
  while (reader.hasMore) {
    logs.push(readLog(reader));
    if (logs.length % LOGS_AT_ONCE === 0) yield;
  }
  return receipt;
}

/**
 * The changes of each transaction; behind them, where code of any called modules, the places of
 * those transactions with their events.
 */
export function encodeJournalPage(journals: readonly TransactionJournal[]): Uint8Array {
  const placed = journals.flatMap(({ events }, item) =>
    events === undefined ? [] : [[item, events.map(eventItem)]],
  );
  const changes = journals.map((one) => one.changes.map(changeItem));
  return encodeRlp(placed.length === 0 ? changes : [...changes, placed]);
}

/** The changes of each of a page's transactions, and the events by their place. */
export interface JournalPage {
  readonly changes: readonly (readonly BalanceChange[])[];
  readonly events: ReadonlyMap<number, readonly AbciEvent[]>;
}

/**
 * Reads what `encodeJournalPage` wrote.
 * @param count of transactions of the page
 * @throws INVALID_RLP
 */
export function readJournalPage(reader: RlpReader, count: number): JournalPage {
  return reader.list(() => {
    const changes: (readonly BalanceChange[])[] = [];
    while (changes.length < count) changes.push(reader.items(readChange));
    return { changes, events: reader.hasMore ? readPlacedEvents(reader) : NO_EVENTS };
  });
}

const NO_EVENTS: ReadonlyMap<number, readonly AbciEvent[]> = new Map();

/** What `encodeJournalPage` put behind the changes: events by the place of their transaction. */
export function readPlacedEvents(reader: RlpReader): Map<number, AbciEvent[]> {
  return new Map(reader.items(readPlaced));
}

function readPlaced(reader: RlpReader): readonly [number, AbciEvent[]] {
  return reader.list(() => [reader.number(), reader.items(readEvent)]);
}

/** What a block did beside its transactions. */
export function encodeBlockChanges(journal: Omit<BlockJournal, "transactions">): Uint8Array {
  const { blockChanges, mintedAtoken, burnedAtoken, moduleEvents = [] } = journal;
  return encodeRlp([
    blockChanges.map(changeItem),
    mintedAtoken,
    burnedAtoken,
    // Blocks without events of modules are written as they always were.
    ...(moduleEvents.length === 0 ? [] : [moduleEvents.map(eventItem)]),
  ]);
}

/** Reads what `encodeBlockChanges` wrote. Throws INVALID_RLP. */
export function readBlockChanges(reader: RlpReader): Omit<BlockJournal, "transactions" | "height"> {
  return reader.list(() => ({
    blockChanges: reader.items(readChange),
    mintedAtoken: reader.integer(),
    burnedAtoken: reader.integer(),
    ...(reader.hasMore ? { moduleEvents: reader.items(readEvent) } : {}),
  }));
}
