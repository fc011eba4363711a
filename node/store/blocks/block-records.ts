/**
 * How a block is stored, the two directions of it: an outline, and pages (stored-page.ts) of neighbouring
 * transactions with their hashes, receipts and balance changes each under a key of its own. Who
 * wants one receipt reads one small page and decodes one item of it, whatever the block holds.
 */
import type { BlockJournal } from "../../../chain/balance-change.js";
import type { MinedCosmosTransaction } from "../../../chain/cosmos/cosmos-result.js";
import { type Height, hexToBytes } from "../../../chain/hex.js";
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import { encodedRlpItems } from "../../../chain/encoding/rlp.js";
import { encodeRlp, encodeRlpListOfEncoded } from "../../../chain/encoding/rlp-writer.js";
import { readRlp } from "../../../chain/encoding/rlp-reader.js";
import { provableCosmosItem } from "./whole-block-codec.js";
import { outlineOf, PAGE_TRANSACTIONS } from "../../view/block-pages.js";
import type { CommittedBlock } from "../../view/event-bus.js";
import { eachInSteps, type Steps } from "../../../chain/steps/steps.js";
import { headerItem, transactionItem } from "../../../chain/records/block-items.js";
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
  readBlockChanges,
} from "../../../chain/records/pages.js";
import {
  type Database,
  StoreError,
  storeKey,
  type StoreSnapshot,
  type StoreWrite,
} from "../database.js";
import type { StoreBase } from "../store-base.js";
import { damaged, PAGE_SPACES, type PageSpace, StoredPage } from "./stored-page.js";

/** A page is closed when it has about so much; a single transaction may be larger. */
const PAGE_BYTES = 32 * 1024;

/** About what a transaction, a log and a balance change take beside their own bytes. */
const TRANSACTION_BYTES = 80;
const LOG_BYTES = 160;
const CHANGE_BYTES = 64;
const EVENT_BYTES = 300;

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

function cosmosKey(at: Buffer, item: number): Buffer {
  return storeKey("cosmosTransaction", at, encodeIndexes([item]));
}

function pageKey(space: PageSpace, at: Buffer, first: number): Buffer {
  return storeKey(space, at, encodeIndexes([first]));
}
