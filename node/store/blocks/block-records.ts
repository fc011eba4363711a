/**
 * How a block is stored, the two directions of it: an outline, and pages of neighbouring
 * transactions with their hashes, receipts and balance changes each under a key of its own. Who
 * wants one receipt reads one small page and decodes one item of it, whatever the block holds.
 */
import type {
  BalanceChange,
  BlockJournal,
  TransactionJournal,
} from "../../../chain/balance-change.js";
import type { BlockTransaction } from "../../../chain/block.js";
import type { Log, Receipt } from "../../../chain/receipt.js";
import type { MinedCosmosTransaction } from "../../../chain/cosmos/cosmos-result.js";
import { type Hash32, type Height, hexToBytes } from "../../../chain/hex.js";
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import { encodedRlpItems } from "../../../chain/encoding/rlp.js";
import { encodeRlp, encodeRlpListOfEncoded } from "../../../chain/encoding/rlp-writer.js";
import { readRlp, RlpReader } from "../../../chain/encoding/rlp-reader.js";
import { provableCosmosItem } from "./whole-block-codec.js";
import {
  type BlockPage,
  outlineOf,
  PAGE_TRANSACTIONS,
  type PaidGas,
  type PlacedReceipt,
  placeReceipts,
} from "../../view/block-pages.js";
import type { LogTest, PlacedLog } from "../../view/chain-view.js";
import type { CommittedBlock } from "../../view/event-bus.js";
import type { AbciEvent } from "../../../chain/consensus/abci-types.js";
import { eachInSteps, type Steps } from "../../../chain/steps/steps.js";
import {
  headerItem,
  readChange,
  readLog,
  readTransaction,
  transactionItem,
  unpackBloom,
} from "../../../chain/records/block-items.js";
import type { BlockRecordBytes, PageRecordBytes } from "../../../chain/records/block-records.js";
import { cosmosItem, readCosmosTransaction } from "../../../chain/records/cosmos-items.js";
import {
  encodeIndexes,
  encodeOutline,
  readOutline,
  type StoredOutline,
} from "../../../chain/records/outline.js";
import {
  encodeBlockChanges,
  encodeHashPage,
  encodeJournalPage,
  encodeReceiptPage,
  hashAt,
  readBlockChanges,
  readJournalPage,
  readPlacedEvents,
  readReceiptPage,
  storedReceiptSteps,
} from "../../../chain/records/pages.js";
import {
  type Database,
  type KeySpace,
  StoreError,
  storeKey,
  type StoreSnapshot,
  type StoreWrite,
} from "../database.js";
import type { StoreBase } from "../store-base.js";

/** Key spaces of pages: height and index of the first transaction are the key. */
const PAGE_SPACES = ["hashPage", "transactionPage", "receiptPage", "journalPage"] as const;

type PageSpace = Extract<KeySpace, (typeof PAGE_SPACES)[number]>;

/** A page is closed when it has about so much; a single transaction may be larger. */
const PAGE_BYTES = 32 * 1024;

/** About what a transaction, a log and a balance change take beside their own bytes. */
const TRANSACTION_BYTES = 80;
const LOG_BYTES = 160;
const CHANGE_BYTES = 64;
const EVENT_BYTES = 300;

/** Logs of a page that are looked at without a pause: some hundredths of a millisecond. */
const LOGS_AT_ONCE = 64;

/** Fields of a receipt before its bloom, and which of them are its logs. */
const RECEIPT_FIELDS = 7;
const LOGS_FIELD = 6;
/** Which are its status and cumulative gas. */
const [STATUS_FIELD, CUMULATIVE_GAS_FIELD] = [1, 3];

/** Indexes of the transactions that the pages of a block begin with, in steps. */
export function* pageStartSteps({ block, receipts, journal }: CommittedBlock): Steps<number[]> {
  const starts: number[] = [];
  let sizeBytes = PAGE_BYTES;
  let count = 0;
  yield* eachInSteps(block.transactions.entries(), ([index, { tx }]) => {
    if (sizeBytes >= PAGE_BYTES || count >= PAGE_TRANSACTIONS) {
      starts.push(index);
      [sizeBytes, count] = [0, 0];
    }
    const receipt = receipts[index];
    const changed = journal.transactions[index];
    if (receipt === undefined || changed === undefined) {
      throw new RangeError("a transaction has no receipt or no journal");
    }
    count += 1;
    sizeBytes += tx.raw.length + TRANSACTION_BYTES + changed.changes.length * CHANGE_BYTES;
    for (const log of receipt.logs) sizeBytes += log.data.length + LOG_BYTES;
    sizeBytes += (changed.events?.length ?? 0) * EVENT_BYTES;
  });
  return starts;
}

/** The writes of a block's outline, pages and block-level changes, in steps of a page each. */
export function* blockRecordSteps(
  committed: CommittedBlock,
  starts: readonly number[],
): Steps<StoreWrite[]> {
  const { block, journal } = committed;
  const at = heightBytes(block.header.height);
  const writes: StoreWrite[] = [
    { key: storeKey("outline", at), value: encodeOutline(outlineOf(committed), starts) },
    { key: storeKey("blockChanges", at), value: encodeBlockChanges(journal) },
  ];
  for (const [item, mined] of (block.cosmos ?? []).entries()) {
    writes.push({ key: cosmosKey(at, item), value: encodeRlp(cosmosItem(mined)) });
  }
  let logCount = 0;
  for (const [number, first] of starts.entries()) {
    const end = starts[number + 1] ?? block.transactions.length;
    const receipts = committed.receipts.slice(first, end);
    const values: Record<PageSpace, () => Uint8Array> = {
      hashPage: () => encodeHashPage(block.transactions.slice(first, end)),
      transactionPage: () => encodeRlp(block.transactions.slice(first, end).map(transactionItem)),
      receiptPage: () => encodeReceiptPage(receipts, logCount),
      journalPage: () => encodeJournalPage(journal.transactions.slice(first, end)),
    };
    for (const space of PAGE_SPACES) {
      writes.push({ key: pageKey(space, at, first), value: values[space]() });
      yield;
    }
    for (const { logs } of receipts) logCount += logs.length;
  }
  return writes;
}

/** Keys of a block's pages, Cosmos transactions and block-level changes, and of its outline. */
export function blockRecordKeys(
  height: Height,
  { starts, cosmosPlaces }: Pick<StoredOutline, "starts" | "cosmosPlaces">,
): Buffer[] {
  const at = heightBytes(height);
  return [
    storeKey("outline", at),
    storeKey("blockChanges", at),
    ...cosmosPlaces.map((_, item) => cosmosKey(at, item)),
    ...starts.flatMap((first) => PAGE_SPACES.map((space) => pageKey(space, at, first))),
  ];
}

/** Reads the records of blocks, now or in a snapshot; what is pruned throws HISTORY_PRUNED. */
export class BlockRecords {
  constructor(
    private readonly database: Database,
    private readonly snapshot?: StoreSnapshot,
    /** How far back it reaches: a block is read part by part, and may be pruned in between. */
    private readonly base?: Pick<StoreBase, "assertBlock">,
  ) {}

  /** Throws STORE_CORRUPT where it is missing. */
  outline(height: Height): StoredOutline {
    return readRlp(this.need(storeKey("outline", heightBytes(height)), height), readOutline);
  }

  /** Changes that no transaction of the block made. */
  blockChanges(height: Height): Omit<BlockJournal, "transactions"> {
    const bytes = this.need(storeKey("blockChanges", heightBytes(height)), height);
    return { height, ...readRlp(bytes, readBlockChanges) };
  }

  /** The Cosmos transactions of a block, in order. */
  cosmos(outline: StoredOutline): MinedCosmosTransaction[] {
    return outline.cosmosPlaces.map((_, item) => this.cosmosAt(outline, item));
  }

  /** One of them, by its number among them. Throws STORE_CORRUPT where it is missing. */
  cosmosAt({ header: { height } }: StoredOutline, item: number): MinedCosmosTransaction {
    return readRlp(this.need(cosmosKey(heightBytes(height), item), height), readCosmosTransaction);
  }

  /** The bytes of one of them, of which nothing else is decoded. Throws as `cosmosAt`. */
  cosmosBytes({ header: { height } }: StoredOutline, item: number): Uint8Array {
    const [raw] = encodedRlpItems(this.need(cosmosKey(heightBytes(height), item), height));
    if (raw === undefined) throw damaged("a Cosmos transaction has no bytes");
    return readRlp(raw, (reader) => reader.bytes());
  }

  /** The records of a block as they are; pages and Cosmos transactions are read one after the other. */
  stored(height: Height): BlockRecordBytes {
    const at = heightBytes(height);
    const outline = this.outline(height);
    return {
      outline: this.need(storeKey("outline", at), height),
      changes: this.need(storeKey("blockChanges", at), height),
      cosmos: this.storedCosmos(height, outline),
      pages: this.storedPages(height, outline),
    };
  }

  private *storedCosmos(height: Height, { cosmosPlaces }: StoredOutline): Generator<Uint8Array> {
    const at = heightBytes(height);
    for (const item of cosmosPlaces.keys()) yield this.need(cosmosKey(at, item), height);
  }

  private *storedPages(height: Height, { starts }: StoredOutline): Generator<PageRecordBytes> {
    const at = heightBytes(height);
    for (const first of starts) {
      const read = (space: PageSpace) => this.need(pageKey(space, at, first), height);
      yield [read("hashPage"), read("transactionPage"), read("receiptPage"), read("journalPage")];
    }
  }

  /** The page whose transactions begin with one of the outline's starts. */
  page(outline: StoredOutline, first: number): StoredPage {
    const { height } = outline.header;
    const next = outline.starts.find((start) => start > first) ?? outline.transactionCount;
    const read = (space: PageSpace) =>
      this.need(pageKey(space, heightBytes(height), first), height);
    return new StoredPage(first, next - first, read);
  }

  /** The page that a transaction is in. */
  pageOf(outline: StoredOutline, index: number): StoredPage | undefined {
    if (index < 0 || index >= outline.transactionCount) return undefined;
    const first = outline.starts.findLast((start) => start <= index);
    return first === undefined ? undefined : this.page(outline, first);
  }

  /**
   * The whole block and its receipts as `encodeBlock` and `encodeReceipts` give them, put together
   * from what is stored without decoding it.
   */
  encoded(height: Height): { readonly block: Uint8Array; readonly receipts: Uint8Array } {
    const outline = this.outline(height);
    const { header, timeMs, dataHash } = outline;
    const pages = outline.starts.map((first) => this.page(outline, first));
    const block = [
      encodeRlp(headerItem(header)),
      encodeRlp(timeMs),
      encodeRlp(hexToBytes(dataHash)),
      encodeRlpListOfEncoded(pages.flatMap((page) => page.encodedTransactions())),
      ...(outline.cosmosPlaces.length === 0
        ? []
        : [encodeRlp(this.cosmos(outline).map(provableCosmosItem))]),
    ];
    return {
      block: encodeRlpListOfEncoded(block),
      receipts: encodeRlpListOfEncoded(pages.flatMap((page) => page.encodedReceipts())),
    };
  }

  private need(key: Buffer, height: Height): Buffer {
    const bytes = this.database.get(key, this.snapshot);
    if (bytes !== undefined) return bytes;
    this.base?.assertBlock(height);
    throw new StoreError("STORE_CORRUPT", "a committed block is missing from the store", {
      details: { height },
    });
  }
}

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

function cosmosKey(at: Buffer, item: number): Buffer {
  return storeKey("cosmosTransaction", at, encodeIndexes([item]));
}

function pageKey(space: PageSpace, at: Buffer, first: number): Buffer {
  return storeKey(space, at, encodeIndexes([first]));
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

function damaged(reason: string): StoreError {
  return new StoreError("STORE_CORRUPT", reason);
}
