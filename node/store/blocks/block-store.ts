/** Blocks, receipts, journals and their indexes, by height and by hash. */
import type { BlockRecordBytes } from "../../../chain/records/block-records.js";
import { LRUCache } from "lru-cache";
import { decodedBytes } from "../../../chain/cosmos/decoded-bytes.js";
import { heightBytes, readHeight } from "../../../chain/encoding/height-bytes.js";
import { bytesToHash32, type Hash32, type Height } from "../../../chain/hex.js";
import { BLOOM_BYTES, type Receipt } from "../../../chain/receipt.js";
import { decodeRlp, rlpInteger, rlpList } from "../../../chain/encoding/rlp.js";
import type { BlockOutline, BlockTransaction } from "../../../chain/block.js";
import type { AbciEvent } from "../../../chain/consensus/abci-types.js";
import type { MinedCosmosTransaction } from "../../../chain/cosmos/cosmos-result.js";
import type {
  BalanceChange,
  BlockJournal,
  TransactionJournal,
} from "../../../chain/balance-change.js";
import {
  type BlockPage,
  pagesOf,
  type PlacedReceipt,
  placedReceipt,
} from "../../view/block-pages.js";
import type { LogTerm, LogTest, PlacedLog, Supply } from "../../view/chain-view.js";
import { allAtOnce, eachInSteps, type Steps } from "../../../chain/steps/steps.js";
import type { CommittedBlock, TransactionLocation } from "../../view/event-bus.js";
import { BlockRecords } from "./block-records.js";
import type { StoredOutline } from "../../../chain/records/outline.js";
import { type Database, StoreError, storeKey } from "../database.js";
import { LogIndex } from "./log-index.js";
import type { StoreBase } from "../store-base.js";

/**
 * Memory for the newest blocks, decoded. Everybody asks for them at once when they come; one or
 * two of ten thousand transfers fit.
 */
const RECENT_BLOCK_BYTES = 32 * 1024 * 1024;

/** About what an object of each kind takes beside its bytes (measured on Node 20). */
const TRANSACTION_BYTES = 1_400;
const LOG_BYTES = 900;
const CHANGE_BYTES = 120;

/** Hashes whose heights are kept, 200 bytes each; so few that a block's is found by a look at all. */
const CACHED_HASHES = 256;

/** Outlines kept: a kilobyte each. */
const CACHED_OUTLINES = 2_048;

/** Heights below the oldest block whose hashes are kept: BLOCKHASH reaches so far back. */
export const HASHES_BELOW_BASE = 256;

/** Reads of committed blocks; what is pruned throws HISTORY_PRUNED. */
export class BlockStore {
  private readonly recent: LRUCache<Height, CommittedBlock>;
  private readonly outlines = new LRUCache<Height, StoredOutline>({ max: CACHED_OUTLINES });
  /** Whoever names a block by its hash asks for many things of it. */
  private readonly heights = new LRUCache<Hash32, Height>({ max: CACHED_HASHES });
  private readonly records: BlockRecords;
  private readonly logs: LogIndex;

  /** @param options.recentBytes memory for the newest blocks, decoded (estimated) */
  constructor(
    private readonly database: Database,
    private readonly base: StoreBase,
    options: { readonly recentBytes?: number | undefined } = {},
  ) {
    this.records = new BlockRecords(database, undefined, base);
    this.logs = new LogIndex(database);
    this.recent = new LRUCache({
      maxSize: options.recentBytes ?? RECENT_BLOCK_BYTES,
      sizeCalculation: memoryBytes,
    });
  }

  /** The last committed height, or undefined in an empty store. */
  tip(): Height | undefined {
    const bytes = this.database.get(storeKey("tip"));
    return bytes === undefined ? undefined : readHeight(bytes, 0);
  }

  /** The oldest height whose block is here; 0 where nothing is missing. */
  oldest(): Height {
    return this.base.get().base;
  }

  /** A block without what is in it; the caller has checked the height against the head. */
  outline(height: Height): StoredOutline {
    this.base.assertBlock(height);
    const cached = this.outlines.get(height);
    if (cached !== undefined) return cached;
    const outline = this.records.outline(height);
    this.outlines.set(height, outline);
    return outline;
  }

  /** One transaction of a block; undefined where it has no such one. */
  transaction(height: Height, index: number): BlockTransaction | undefined {
    this.base.assertBlock(height);
    const recent = this.recent.get(height);
    if (recent !== undefined) return recent.block.transactions[index];
    const page = this.records.pageOf(this.outline(height), index);
    return page?.transaction(index - page.first);
  }

  /** One receipt of a block; undefined where it has no such one. */
  receipt(height: Height, index: number): PlacedReceipt | undefined {
    return allAtOnce(this.receiptSteps(height, index));
  }

  /** The same in steps: it may have tens of thousands of logs. */
  *receiptSteps(height: Height, index: number): Steps<PlacedReceipt | undefined> {
    this.base.assertBlock(height);
    const recent = this.recent.get(height);
    if (recent !== undefined) return placedReceipt(recent, index);
    const page = this.records.pageOf(this.outline(height), index);
    return page && (yield* page.oneReceiptSteps(index - page.first));
  }

  /** The Cosmos transactions of a block, in order. */
  cosmos(height: Height): readonly MinedCosmosTransaction[] {
    this.base.assertBlock(height);
    const recent = this.recent.get(height);
    if (recent !== undefined) return recent.block.cosmos ?? [];
    return this.records.cosmos(this.outline(height));
  }

  /** One of them, by its number among them; without the others, which may be thousands. */
  cosmosTransaction(height: Height, item: number): MinedCosmosTransaction | undefined {
    this.base.assertBlock(height);
    const recent = this.recent.get(height);
    if (recent !== undefined) return recent.block.cosmos?.[item];
    const outline = this.outline(height);
    const isThere = item >= 0 && item < outline.cosmosPlaces.length;
    return isThere ? this.records.cosmosAt(outline, item) : undefined;
  }

  /** The bytes of a Cosmos transaction of a block, by its number among them, without decoding it. */
  cosmosBytes(height: Height, item: number): Uint8Array | undefined {
    this.base.assertBlock(height);
    const recent = this.recent.get(height);
    if (recent !== undefined) return recent.block.cosmos?.[item]?.tx.raw;
    const outline = this.outline(height);
    const isThere = item >= 0 && item < outline.cosmosPlaces.length;
    return isThere ? this.records.cosmosBytes(outline, item) : undefined;
  }

  /** What one EVM transaction of a block did to balances; nothing where the journal is not here. */
  changes(height: Height, index: number): readonly BalanceChange[] {
    this.base.assertBlock(height);
    const recent = this.recent.get(height);
    if (recent !== undefined) return recent.journal.transactions[index]?.changes ?? [];
    const page = this.records.pageOf(this.outline(height), index);
    return page?.changes(index - page.first) ?? [];
  }

  /** Events of modules that the code of one EVM transaction called. */
  moduleEvents(height: Height, index: number): readonly AbciEvent[] {
    this.base.assertBlock(height);
    const recent = this.recent.get(height);
    if (recent !== undefined) return recent.journal.transactions[index]?.events ?? [];
    const page = this.records.pageOf(this.outline(height), index);
    return page?.events(index - page.first) ?? [];
  }

  /** The transactions of a block with what belongs to them, a page after the other. */
  pages(height: Height): Iterable<BlockPage> {
    this.base.assertBlock(height);
    const recent = this.recent.get(height);
    return recent === undefined ? this.storedPages(height) : pagesOf(recent);
  }

  private *storedPages(height: Height): Generator<BlockPage> {
    const outline = this.outline(height);
    for (const first of outline.starts) yield this.records.page(outline, first);
  }

  /** The records of a block as they are stored, its journal among them. */
  stored(height: Height): BlockRecordBytes {
    this.base.assertBlock(height);
    this.base.assertJournal(height);
    return this.records.stored(height);
  }

  /** Changes of a block that no transaction made. */
  blockChanges(height: Height): Omit<BlockJournal, "transactions"> {
    this.base.assertBlock(height);
    return this.recent.get(height)?.journal ?? this.records.blockChanges(height);
  }

  /**
   * Block, receipts and journal of a height as a whole, in memory: some ten milliseconds for one
   * of ten thousand transactions that is not among the newest. Who wants a part asks for that.
   * The one block that a node got without its journal (state sync) has an empty one: ask
   * `StoreBase.assertJournal` before reading it.
   */
  block(height: Height): CommittedBlock {
    this.base.assertBlock(height);
    const recent = this.recent.get(height);
    if (recent !== undefined) return recent;
    const outline = this.outline(height);
    const cosmos = this.records.cosmos(outline);
    const parts = new WholeBlock(outline, this.records.blockChanges(height), cosmos);
    for (const page of this.storedPages(height)) parts.add(page);
    this.recent.set(height, parts.committed);
    return parts.committed;
  }

  /**
   * The same, a page or a Cosmos transaction at a time, and not kept.
   * @param pause called in between, to let others run
   */
  async load(height: Height, pause: () => Promise<void> | undefined): Promise<CommittedBlock> {
    this.base.assertBlock(height);
    const recent = this.recent.get(height);
    if (recent !== undefined) return recent;
    const outline = this.outline(height);
    const cosmos: MinedCosmosTransaction[] = [];
    for (let item = 0; item < outline.cosmosPlaces.length; item++) {
      cosmos.push(this.records.cosmosAt(outline, item));
      await pause();
    }
    const parts = new WholeBlock(outline, this.records.blockChanges(height), cosmos);
    for (const page of this.storedPages(height)) {
      parts.add(page);
      await pause();
    }
    return parts.committed;
  }

  /** Drops a block that was deleted from the caches. */
  forget(height: Height): void {
    this.recent.delete(height);
    this.outlines.delete(height);
    for (const [hash, known] of this.heights.entries()) {
      if (known === height) this.heights.delete(hash);
    }
  }

  /**
   * Keeps a block that was just committed in memory.
   * @param sizeBytes what `memorySteps` says of it, where that was asked before
   */
  remember(committed: CommittedBlock, sizeBytes = memoryBytes(committed)): void {
    this.recent.set(committed.block.header.height, committed, { size: sizeBytes });
  }

  /** The pages of a range of blocks that have logs of a term, both ends included. */
  logPages(
    term: LogTerm,
    from: Height,
    to: Height,
  ): AsyncIterable<{ height: Height; starts: readonly number[] }> {
    if (to > 0) this.base.assertBlock(Math.max(from, 1));
    return this.logs.pages(term, from, to);
  }

  /** Logs of a page, by its first transaction, that a test of their encoded parts lets pass. */
  pageLogs(height: Height, start: number, isWanted: LogTest): Iterable<PlacedLog | undefined> {
    this.base.assertBlock(height);
    return this.records.page(this.outline(height), start).logs(isWanted);
  }

  /** Height of a block hash. */
  heightOfHash(hash: Hash32): Height | undefined {
    const known = this.heights.get(hash);
    if (known !== undefined) return known;
    const bytes = this.database.get(storeKey("blockHash", hash));
    if (bytes === undefined) return undefined;
    const height = readHeight(bytes, 0);
    this.heights.set(hash, height);
    return height;
  }

  /** Hash of a committed block, without decoding it; there for `HASHES_BELOW_BASE` more. */
  hashOf(height: Height): Hash32 {
    if (height < this.base.get().base - HASHES_BELOW_BASE) this.base.assertBlock(height);
    const hash = this.database.get(storeKey("heightHash", heightBytes(height)));
    if (hash === undefined) {
      throw new StoreError("STORE_CORRUPT", "the hash of a committed block is missing", {
        details: { height },
      });
    }
    return bytesToHash32(hash);
  }

  /** Location of a transaction by either of its hashes. */
  locate(space: "transaction" | "sdkTransaction", hash: Hash32): TransactionLocation | undefined {
    const bytes = this.database.get(storeKey(space, hash));
    if (bytes === undefined) return undefined;
    return { height: readHeight(bytes, 0), index: bytes.readUInt32BE(8) };
  }

  /** Blooms of a range of heights, both ends included. */
  blooms(from: Height, to: Height): AsyncIterable<{ height: Height; bloom: Uint8Array }> {
    if (to > 0) this.base.assertBlock(Math.max(from, 1));
    return this.readBlooms(from, to);
  }

  private async *readBlooms(
    from: Height,
    to: Height,
  ): AsyncIterable<{ height: Height; bloom: Uint8Array }> {
    const range = {
      from: storeKey("bloom", heightBytes(from)),
      to: storeKey("bloom", heightBytes(to)),
    };
    for await (const [key, bloom] of this.database.entries(range)) {
      if (bloom.length !== BLOOM_BYTES) throw new StoreError("STORE_CORRUPT", "bloom is damaged");
      yield { height: readHeight(key, 1), bloom };
    }
  }

  /** Supply after a block. */
  supply(height: Height): Supply | undefined {
    this.base.assertBlock(height);
    const bytes = this.database.get(storeKey("supply", heightBytes(height)));
    if (bytes === undefined) return undefined;
    const [total, minted, burned] = rlpList(decodeRlp(bytes));
    return {
      totalAtoken: rlpInteger(total),
      mintedAtoken: rlpInteger(minted),
      burnedAtoken: rlpInteger(burned),
    };
  }
}

/** A block that is put together from its pages. */
class WholeBlock {
  private readonly transactions: BlockTransaction[] = [];
  private readonly receipts: Receipt[] = [];
  private readonly journal: TransactionJournal[] = [];

  constructor(
    private readonly outline: BlockOutline,
    private readonly changes: Omit<BlockJournal, "transactions">,
    private readonly cosmos: readonly MinedCosmosTransaction[],
  ) {}

  add(page: BlockPage): void {
    this.transactions.push(...page.transactions());
    this.receipts.push(...page.receipts().map(({ receipt }) => receipt));
    this.journal.push(...page.journal());
  }

  /** The block; all pages have been added. */
  get committed(): CommittedBlock {
    const { header, hash, timeMs, dataHash } = this.outline;
    const { cosmos, transactions, receipts } = this;
    return {
      block: { header, hash, timeMs, dataHash, transactions, ...cosmosPart(cosmos) },
      receipts,
      journal: { ...this.changes, transactions: this.journal, ...cosmosJournal(cosmos) },
    };
  }
}

/** `cosmos` of a block; absent where there is none. */
export function cosmosPart(cosmos: readonly MinedCosmosTransaction[]) {
  return cosmos.length === 0 ? {} : { cosmos };
}

/** `cosmos` of a journal; absent where there is none. */
export function cosmosJournal(cosmos: readonly MinedCosmosTransaction[]) {
  return cosmosPart(cosmos).cosmos === undefined
    ? {}
    : { cosmos: cosmos.map(({ tx, changes }) => ({ transactionHash: tx.hash, changes })) };
}

function memoryBytes(committed: CommittedBlock): number {
  return allAtOnce(memorySteps(committed));
}

/** About what a decoded block takes in memory, in steps. */
export function* memorySteps({ block, receipts, journal }: CommittedBlock): Steps<number> {
  let sizeBytes = TRANSACTION_BYTES;
  sizeBytes += (journal.moduleEvents?.length ?? 0) * LOG_BYTES;
  for (const { tx, changes, result } of block.cosmos ?? []) {
    sizeBytes += 4 * TRANSACTION_BYTES + decodedBytes(tx) + changes.length * CHANGE_BYTES;
    sizeBytes += result.events.length * LOG_BYTES;
  }
  yield* eachInSteps(block.transactions.entries(), ([index, { tx }]) => {
    sizeBytes += TRANSACTION_BYTES + decodedBytes(tx);
    for (const { data } of receipts[index]?.logs ?? []) sizeBytes += LOG_BYTES + data.length;
    sizeBytes += (journal.transactions[index]?.changes.length ?? 0) * CHANGE_BYTES;
  });
  return sizeBytes;
}
