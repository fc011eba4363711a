/**
 * How a block is stored, the two directions of it: an outline, and pages of neighbouring
 * transactions with their hashes, receipts and balance changes each under a key of its own. Who
 * wants one receipt reads one small page and decodes one item of it, whatever the block holds.
 */
import type {
  BalanceChange,
  BlockJournal,
  TransactionJournal,
} from "../../chain/balance-change.js";
import { type BlockTransaction, hashHeader } from "../../chain/block.js";
import type { MinedCosmosTransaction } from "../../chain/cosmos/cosmos-result.js";
import { bytesToHash32, type Hash32, type Height, hexToBytes } from "../../chain/hex.js";
import { heightBytes } from "../../chain/encoding/height-bytes.js";
import type { Receipt } from "../../chain/receipt.js";
import {
  decodeRlp,
  encodedRlpItems,
  encodeRlp,
  encodeRlpListOfEncoded,
  rlpBytes,
  type RlpItem,
  rlpInteger,
  rlpList,
} from "../../chain/encoding/rlp.js";
import { provableCosmosItem } from "./whole-block-codec.js";
import {
  type BlockOutline,
  type BlockPage,
  outlineOf,
  PAGE_TRANSACTIONS,
  type PlacedReceipt,
  placeReceipts,
} from "../view/block-pages.js";
import type { LogTest, PlacedLog } from "../view/chain-view.js";
import type { CommittedBlock } from "../view/event-bus.js";
import type { Steps } from "../../chain/steps/steps.js";
import {
  changeItem,
  decodeChange,
  decodeHeader,
  decodeLog,
  decodeReceipt,
  decodeTransactionItem,
  headerItem,
  integer,
  packBloom,
  receiptFields,
  safeInteger,
  transactionItem,
  unpackBloom,
} from "./block-codec.js";
import type { AbciEvent } from "../../chain/consensus/abci-types.js";
import { cosmosItem, decodeCosmosItem, decodeEvent, eventItem } from "./cosmos-codec.js";
import { decodePlacedEvents, encodeJournalPage } from "./journal-page.js";
import {
  type Database,
  type KeySpace,
  StoreError,
  storeKey,
  type StoreSnapshot,
  type StoreWrite,
} from "./database.js";

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

/** Bytes of a place in lists of them. */
const INDEX_BYTES = 4;
const HASH_BYTES = 32;

/** Fields of a receipt before its bloom, and which of them are its logs. */
const RECEIPT_FIELDS = 7;
const LOGS_FIELD = 6;

/** An outline with where the block's pages begin. */
export interface StoredOutline extends BlockOutline {
  /** Index of the first transaction of each page, ascending. */
  readonly starts: readonly number[];
}

/** Indexes of the transactions that the pages of a block begin with, in steps. */
export function* pageStartSteps({ block, receipts, journal }: CommittedBlock): Steps<number[]> {
  const starts: number[] = [];
  let sizeBytes = PAGE_BYTES;
  let count = 0;
  for (const [index, { tx }] of block.transactions.entries()) {
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
    yield;
  }
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
    { key: storeKey("outline", at), value: encodeOutline(committed, starts) },
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
      hashPage: () => encodeHashes(block.transactions.slice(first, end)),
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

/** Reads the records of blocks that are there, now or in a snapshot. */
export class BlockRecords {
  constructor(
    private readonly database: Database,
    private readonly snapshot?: StoreSnapshot,
  ) {}

  /** Throws STORE_CORRUPT where it is missing. */
  outline(height: Height): StoredOutline {
    return decodeOutline(this.need(storeKey("outline", heightBytes(height)), height));
  }

  /** Changes that no transaction of the block made. */
  blockChanges(height: Height): Omit<BlockJournal, "transactions"> {
    const bytes = this.need(storeKey("blockChanges", heightBytes(height)), height);
    const [changes, minted, burned, events] = rlpList(decodeRlp(bytes));
    return {
      height,
      blockChanges: rlpList(changes).map(decodeChange),
      mintedAtoken: rlpInteger(minted),
      burnedAtoken: rlpInteger(burned),
      ...(events === undefined ? {} : { moduleEvents: rlpList(events).map(decodeEvent) }),
    };
  }

  /** The Cosmos transactions of a block, in order. */
  cosmos(outline: StoredOutline): MinedCosmosTransaction[] {
    return outline.cosmosPlaces.map((_, item) => this.cosmosAt(outline, item));
  }

  /** One of them, by its number among them. Throws STORE_CORRUPT where it is missing. */
  cosmosAt({ header: { height } }: StoredOutline, item: number): MinedCosmosTransaction {
    return decodeCosmosItem(decodeRlp(this.need(cosmosKey(heightBytes(height), item), height)));
  }

  /** The bytes of one of them, of which nothing else is decoded. Throws as `cosmosAt`. */
  cosmosBytes({ header: { height } }: StoredOutline, item: number): Uint8Array {
    const [raw] = encodedRlpItems(this.need(cosmosKey(heightBytes(height), item), height));
    if (raw === undefined) throw damaged("a Cosmos transaction has no bytes");
    return rlpBytes(decodeRlp(raw));
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
      encodeRlp(integer(timeMs)),
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
    return this.whole(rlpList(decodeRlp(this.read("transactionPage")))).map((transaction, item) =>
      decodeTransactionItem(transaction, hashes[item]),
    );
  }

  /** One transaction; `item` counts from the page's first. */
  transaction(item: number): BlockTransaction {
    const encoded = this.whole(encodedRlpItems(this.read("transactionPage")));
    return decodeTransactionItem(decodeItem(encoded, item));
  }

  /** Transactions with senders, as `transactionItem` has them. */
  encodedTransactions(): readonly Uint8Array[] {
    return this.whole(encodedRlpItems(this.read("transactionPage")));
  }

  /** Receipts without blooms, as `receiptFields` has them. */
  encodedReceipts(): readonly Uint8Array[] {
    const [, ...items] = encodedRlpItems(this.read("receiptPage"));
    return this.whole(items).map((item) =>
      encodeRlpListOfEncoded(encodedRlpItems(item).slice(0, RECEIPT_FIELDS)),
    );
  }

  receipts(): readonly PlacedReceipt[] {
    const [firstLogIndex, ...items] = encodedRlpItems(this.read("receiptPage"));
    const receipts = this.whole(items).map((item) => decodeStoredReceipt(decodeRlp(item)));
    return placeReceipts(receipts, logIndexOf(firstLogIndex));
  }

  /** One receipt; `item` counts from the page's first. */
  receipt(item: number): PlacedReceipt {
    const [logIndex, ...items] = encodedRlpItems(this.read("receiptPage"));
    let firstLogIndex = logIndexOf(logIndex);
    for (const before of this.whole(items).slice(0, item)) {
      firstLogIndex += encodedLogs(before).length;
    }
    return { receipt: decodeStoredReceipt(decodeItem(items, item)), firstLogIndex };
  }

  /**
   * Logs that a test of their encoded address and topics lets pass; of all others nothing is
   * decoded.
   */
  logs(isWanted: LogTest): PlacedLog[] {
    const [logIndex, ...items] = encodedRlpItems(this.read("receiptPage"));
    const found: PlacedLog[] = [];
    let hashes: Buffer | undefined;
    let next = logIndexOf(logIndex);
    for (const [item, encoded] of this.whole(items).entries()) {
      for (const log of encodedLogs(encoded)) {
        const index = next++;
        const [address, topics] = encodedRlpItems(log);
        if (address === undefined || topics === undefined) throw damaged("a log has no topics");
        // Behind their one byte of header: an address has 20 bytes, a topic 32.
        const words = encodedRlpItems(topics).map((topic) => topic.subarray(1));
        if (!isWanted(address.subarray(1), words)) continue;
        found.push({
          log: decodeLog(decodeRlp(log)),
          logIndex: index,
          transactionIndex: this.first + item,
          transactionHash: hashAt((hashes ??= this.read("hashPage")), item),
        });
      }
    }
    return found;
  }

  journal(): readonly TransactionJournal[] {
    const items = rlpList(decodeRlp(this.read("journalPage")));
    const events = decodePlacedEvents(items[this.count]);
    const perTransaction = this.whole(items.slice(0, this.count));
    return this.hashes().map((transactionHash, item) => ({
      transactionHash,
      changes: rlpList(perTransaction[item]).map(decodeChange),
      ...(events.has(item) ? { events: events.get(item) ?? [] } : {}),
    }));
  }

  /** Changes of one transaction; `item` counts from the page's first. */
  changes(item: number): readonly BalanceChange[] {
    const encoded = this.whole(encodedRlpItems(this.read("journalPage")).slice(0, this.count));
    return rlpList(decodeItem(encoded, item)).map(decodeChange);
  }

  /** Events of modules that one transaction's code called; `item` counts from the page's first. */
  events(item: number): readonly AbciEvent[] {
    const placed = encodedRlpItems(this.read("journalPage"))[this.count];
    return placed === undefined ? [] : (decodePlacedEvents(decodeRlp(placed)).get(item) ?? []);
  }

  private whole<Item>(items: Item[]): Item[] {
    if (items.length !== this.count) throw damaged("a page of a block has another length");
    return items;
  }
}

/** Places of transactions, 4 bytes each. */
export function encodeIndexes(indexes: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(indexes.length * INDEX_BYTES);
  for (const [item, index] of indexes.entries()) bytes.writeUInt32BE(index, item * INDEX_BYTES);
  return bytes;
}

/** Reads what `encodeIndexes` wrote. Throws STORE_CORRUPT. */
export function decodeIndexes(bytes: Uint8Array): number[] {
  if (bytes.length % INDEX_BYTES !== 0) throw damaged("a list of places is cut short");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / INDEX_BYTES }, (_, item) =>
    view.getUint32(item * INDEX_BYTES),
  );
}

function cosmosKey(at: Buffer, item: number): Buffer {
  return storeKey("cosmosTransaction", at, encodeIndexes([item]));
}

function pageKey(space: PageSpace, at: Buffer, first: number): Buffer {
  return storeKey(space, at, encodeIndexes([first]));
}

function encodeOutline(committed: CommittedBlock, starts: readonly number[]): Uint8Array {
  const outline = outlineOf(committed);
  return encodeRlp([
    headerItem(outline.header),
    integer(outline.timeMs),
    hexToBytes(outline.dataHash),
    integer(outline.transactionCount),
    integer(outline.transactionBytes),
    encodeIndexes(starts),
    // Blocks without Cosmos transactions are written as they always were.
    ...(outline.cosmosPlaces.length === 0 ? [] : [encodeIndexes(outline.cosmosPlaces)]),
  ]);
}

function decodeOutline(bytes: Uint8Array): StoredOutline {
  const fields = rlpList(decodeRlp(bytes));
  const [headerOf, timeMs, dataHash, count, transactionBytes, starts, places] = fields;
  const header = decodeHeader(headerOf);
  return {
    header,
    hash: hashHeader(header),
    timeMs: safeInteger(timeMs),
    dataHash: bytesToHash32(rlpBytes(dataHash)),
    transactionCount: safeInteger(count),
    transactionBytes: safeInteger(transactionBytes),
    starts: decodeIndexes(rlpBytes(starts)),
    cosmosPlaces: places === undefined ? [] : decodeIndexes(rlpBytes(places)),
  };
}

function encodeBlockChanges(journal: BlockJournal): Uint8Array {
  const { blockChanges, mintedAtoken, burnedAtoken, moduleEvents = [] } = journal;
  return encodeRlp([
    blockChanges.map(changeItem),
    integer(mintedAtoken),
    integer(burnedAtoken),
    // Blocks without events of modules are written as they always were.
    ...(moduleEvents.length === 0 ? [] : [moduleEvents.map(eventItem)]),
  ]);
}

function encodeHashes(transactions: readonly BlockTransaction[]): Buffer {
  const bytes = Buffer.allocUnsafe(transactions.length * HASH_BYTES);
  for (const [item, { tx }] of transactions.entries()) {
    bytes.write(tx.hash.slice(2), item * HASH_BYTES, "hex");
  }
  return bytes;
}

function hashAt(hashes: Buffer, item: number): Hash32 {
  return bytesToHash32(hashes.subarray(item * HASH_BYTES, (item + 1) * HASH_BYTES));
}

/** The count of logs before the page, then the receipts, each with its bloom behind its fields. */
function encodeReceiptPage(receipts: readonly Receipt[], firstLogIndex: number): Uint8Array {
  return encodeRlp([
    integer(firstLogIndex),
    ...receipts.map((receipt) => [...receiptFields(receipt), packBloom(receipt)]),
  ]);
}

function decodeStoredReceipt(item: RlpItem): Receipt {
  const fields = rlpList(item);
  return decodeReceipt(fields, () => unpackBloom(rlpBytes(fields[RECEIPT_FIELDS])));
}

function encodedLogs(receipt: Uint8Array): Uint8Array[] {
  const logs = encodedRlpItems(receipt)[LOGS_FIELD];
  if (logs === undefined) throw damaged("a receipt has no list of logs");
  // Most receipts have none: an empty list is one byte.
  return logs.length === 1 ? [] : encodedRlpItems(logs);
}

function logIndexOf(encoded: Uint8Array | undefined): number {
  if (encoded === undefined) throw damaged("a page of receipts does not say where its logs begin");
  return safeInteger(decodeRlp(encoded));
}

function decodeItem(encoded: readonly Uint8Array[], item: number): RlpItem {
  const bytes = encoded[item];
  if (bytes === undefined) throw damaged("a page of a block has another length");
  return decodeRlp(bytes);
}

function damaged(reason: string): StoreError {
  return new StoreError("STORE_CORRUPT", reason);
}
