/** A page of a stored block, each kind of content of which is read when it is asked for. */
import type { BalanceChange, TransactionJournal } from "../../../chain/balance-change.js";
import type { BlockTransaction } from "../../../chain/block.js";
import type { Log, Receipt } from "../../../chain/receipt.js";
import type { Hash32 } from "../../../chain/hex.js";
import { encodedRlpItems } from "../../../chain/encoding/rlp.js";
import { encodeRlp, encodeRlpListOfEncoded } from "../../../chain/encoding/rlp-writer.js";
import { readRlp, RlpReader } from "../../../chain/encoding/rlp-reader.js";
import {
  type BlockPage,
  type PaidGas,
  type PlacedReceipt,
  placeReceipts,
} from "../../view/block-pages.js";
import type { LogTest, PlacedLog } from "../../view/chain-view.js";
import type { AbciEvent } from "../../../chain/consensus/abci-types.js";
import type { Steps } from "../../../chain/steps/steps.js";
import {
  readChange,
  readLog,
  readTransaction,
  unpackBloom,
} from "../../../chain/records/block-items.js";
import {
  hashAt,
  readJournalPage,
  readPlacedEvents,
  readReceiptPage,
  storedReceiptSteps,
} from "../../../chain/records/pages.js";
import { type KeySpace, StoreError } from "../database.js";

/** Key spaces of pages: height and index of the first transaction are the key. */
export const PAGE_SPACES = ["hashPage", "transactionPage", "receiptPage", "journalPage"] as const;

/** One of them. */
export type PageSpace = Extract<KeySpace, (typeof PAGE_SPACES)[number]>;

/** Logs of a page that are looked at without a pause: some hundredths of a millisecond. */
const LOGS_AT_ONCE = 64;

/** Fields of a receipt before its bloom, and which of them are its logs. */
const RECEIPT_FIELDS = 7;
const LOGS_FIELD = 6;
/** Which are its status and cumulative gas. */
const [STATUS_FIELD, CUMULATIVE_GAS_FIELD] = [1, 3];

/** A page of a stored block; each kind of content is read when it is asked for. */
export class StoredPage implements BlockPage {
  constructor(
    readonly first: number,
    readonly count: number,
    private readonly read: (space: PageSpace) => Buffer,
  ) {}

  hashes(): readonly Hash32[] {
    const bytes = this.read("hashPage");
    return Array.from({ length: this.count }, (_, item) => hashAt(bytes, item));
  }

  transactions(): readonly BlockTransaction[] {
    const hashes = this.hashes();
    let item = 0;
    return this.whole(
      readRlp(this.read("transactionPage"), (page) =>
        page.items((reader) => readTransaction(reader, hashes[item++])),
      ),
    );
  }

  /** One transaction; `item` counts from the page's first. */
  transaction(item: number): BlockTransaction {
    const encoded = this.whole(encodedRlpItems(this.read("transactionPage")));
    return readRlp(itemOf(encoded, item), (reader) => readTransaction(reader));
  }

  /** Transactions with senders, as `transactionItem` has them. */
  encodedTransactions(): readonly Uint8Array[] {
    return this.whole(encodedRlpItems(this.read("transactionPage")));
  }

  /** Receipts without blooms, as `receiptFields` has them. */
  encodedReceipts(): readonly Uint8Array[] {
    return this.receiptItems().map((item) =>
      encodeRlpListOfEncoded(encodedRlpItems(item).slice(0, RECEIPT_FIELDS)),
    );
  }

  receipts(): readonly PlacedReceipt[] {
    const { receipts, firstLogIndex } = readRlp(this.read("receiptPage"), readReceiptPage);
    return placeReceipts(this.whole(receipts), firstLogIndex);
  }

  *receiptSteps(): Steps<readonly PlacedReceipt[]> {
    const [logIndex, ...items] = encodedRlpItems(this.read("receiptPage"));
    const receipts: Receipt[] = [];
    for (const stored of this.whole(items)) receipts.push(yield* storedReceiptSteps(stored));
    return placeReceipts(receipts, logIndexOf(logIndex));
  }

  paidGas(): readonly PaidGas[] {
    return this.receiptItems().map((item) => readRlp(item, readPaidGas));
  }

  *rawReceipts(): Generator<Uint8Array, void> {
    for (const item of this.receiptItems()) yield rawReceipt(item);
  }

  private receiptItems(): readonly Uint8Array[] {
    const [, ...items] = encodedRlpItems(this.read("receiptPage"));
    return this.whole(items);
  }

  /** One receipt, in steps; `item` counts from the page's first. */
  *oneReceiptSteps(item: number): Steps<PlacedReceipt> {
    const [logIndex, ...items] = encodedRlpItems(this.read("receiptPage"));
    let firstLogIndex = logIndexOf(logIndex);
    for (const before of this.whole(items).slice(0, item)) {
      firstLogIndex += countLogs(before);
    }
    return { receipt: yield* storedReceiptSteps(itemOf(items, item)), firstLogIndex };
  }

  /**
   * Logs that a test of their encoded address and topics lets pass, as they are come to; of all
   * others nothing is decoded, and of these when somebody asks. Undefined every few logs.
   */
  *logs(isWanted: LogTest): Generator<PlacedLog | undefined, void> {
    const [logIndex, ...items] = encodedRlpItems(this.read("receiptPage"));
    let hashes: Buffer | undefined;
    let next = logIndexOf(logIndex);
    for (const [item, encoded] of this.whole(items).entries()) {
      const logs = encodedLogs(encoded);
      const reader = new RlpReader(logs);
      reader.enter();
      let transactionHash: Hash32 | undefined;
      for (; reader.hasMore; next++) {
        const from = reader.offset;
        if (isLogWanted(reader, isWanted)) {
          transactionHash ??= hashAt((hashes ??= this.read("hashPage")), item);
          const place = { logIndex: next, transactionIndex: this.first + item, transactionHash };
          yield new StoredLog(logs.subarray(from, reader.offset), place);
        }
        if ((next + 1) % LOGS_AT_ONCE !== 0) continue;
        // Read before a pause, in which the block may be pruned.
        hashes ??= this.read("hashPage");
        yield;
      }
    }
  }

  journal(): readonly TransactionJournal[] {
    const { changes, events } = readRlp(this.read("journalPage"), (reader) =>
      readJournalPage(reader, this.count),
    );
    return this.hashes().map((transactionHash, item) => ({
      transactionHash,
      changes: changes[item] ?? [],
      ...(events.has(item) ? { events: events.get(item) ?? [] } : {}),
    }));
  }

  /** Changes of one transaction; `item` counts from the page's first. */
  changes(item: number): readonly BalanceChange[] {
    const encoded = this.whole(encodedRlpItems(this.read("journalPage")).slice(0, this.count));
    return readRlp(itemOf(encoded, item), (reader) => reader.items(readChange));
  }

  /** Events of modules that one transaction's code called; `item` counts from the page's first. */
  events(item: number): readonly AbciEvent[] {
    const placed = encodedRlpItems(this.read("journalPage"))[this.count];
    return placed === undefined ? [] : (readRlp(placed, readPlacedEvents).get(item) ?? []);
  }

  private whole<Item>(items: readonly Item[]): readonly Item[] {
    if (items.length !== this.count) throw damaged("a page of a block has another length");
    return items;
  }
}

/** What a stored receipt says of its gas. */
function readPaidGas(reader: RlpReader): PaidGas {
  return reader.list(() => {
    // Type and status.
    reader.skip();
    reader.skip();
    const gasUsed = reader.integer();
    // Cumulative gas.
    reader.skip();
    const priceAtoken = reader.integer();
    while (reader.hasMore) reader.skip();
    return { gasUsed, priceAtoken };
  });
}

/** The consensus encoding of a stored receipt: its logs are in it as they are stored. */
function rawReceipt(item: Uint8Array): Uint8Array {
  const fields = encodedRlpItems(item);
  const field = (index: number) => itemOf(fields, index);
  const bloom = unpackBloom(readRlp(field(RECEIPT_FIELDS), (reader) => reader.bytes()));
  const body = encodeRlpListOfEncoded([
    field(STATUS_FIELD),
    field(CUMULATIVE_GAS_FIELD),
    encodeRlp(bloom),
    field(LOGS_FIELD),
  ]);
  const type = readRlp(field(0), (reader) => reader.number());
  return type === 0 ? body : Buffer.concat([Uint8Array.of(type), body]);
}

/** A log of a page, which is decoded when it is asked for. */
class StoredLog implements PlacedLog {
  readonly logIndex: number;
  readonly transactionIndex: number;
  readonly transactionHash: Hash32;

  constructor(
    private readonly encoded: Uint8Array,
    place: Omit<PlacedLog, "log">,
  ) {
    this.logIndex = place.logIndex;
    this.transactionIndex = place.transactionIndex;
    this.transactionHash = place.transactionHash;
  }

  get log(): Log {
    return readRlp(this.encoded, readLog);
  }
}

/** Passes over a log, and asks the test on the way. */
function isLogWanted(reader: RlpReader, isWanted: LogTest): boolean {
  return reader.list(() => {
    const address = reader.bytes();
    const topics = reader.items((within) => within.bytes());
    reader.skip();
    return isWanted(address, topics);
  });
}

/** A receipt's logs as they are stored, as one list. */
function encodedLogs(receipt: Uint8Array): Uint8Array {
  const logs = encodedRlpItems(receipt)[LOGS_FIELD];
  if (logs === undefined) throw damaged("a receipt has no list of logs");
  return logs;
}

function countLogs(receipt: Uint8Array): number {
  const reader = new RlpReader(encodedLogs(receipt));
  reader.enter();
  let count = 0;
  for (; reader.hasMore; count++) reader.skip();
  return count;
}

function logIndexOf(encoded: Uint8Array | undefined): number {
  if (encoded === undefined) throw damaged("a page of receipts does not say where its logs begin");
  return readRlp(encoded, (reader) => reader.number());
}

function itemOf(encoded: readonly Uint8Array[], item: number): Uint8Array {
  const bytes = encoded[item];
  if (bytes === undefined) throw damaged("a page of a block has another length");
  return bytes;
}

/** A fault of the store: what it has of a block contradicts itself. */
export function damaged(reason: string): StoreError {
  return new StoreError("STORE_CORRUPT", reason);
}
