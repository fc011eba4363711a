/** Blocks, receipts, journals and their indexes, by height and by hash. */
import { LRUCache } from "lru-cache";
import { heightBytes, readHeight } from "../../chain/height-bytes.js";
import type { BlockJournal } from "../../chain/balance-change.js";
import type { Block } from "../../chain/block.js";
import { bytesToHash32, type Hash32, type Height, hexToBytes } from "../../chain/hex.js";
import { BLOOM_BYTES, type Receipt } from "../../chain/receipt.js";
import { decodeRlp, rlpInteger, rlpList } from "../../chain/rlp.js";
import type { Supply } from "../chain-view.js";
import type { CommittedBlock, TransactionLocation } from "../event-bus.js";
import { decodeBlock, decodeJournal, decodeReceipts } from "./block-codec.js";
import { type Database, StoreError, storeKey } from "./database.js";
import type { StoreBase } from "./store-base.js";

/** Transactions' worth of decoded blocks that are kept; a transaction takes about 2 KiB. */
const CACHED_TRANSACTIONS = 100_000;

/** Heights below the oldest block whose hashes are kept: BLOCKHASH reaches so far back. */
export const HASHES_BELOW_BASE = 256;

/** A block without one: its journal was not part of the snapshot that the node began with. */
const noJournal = (height: Height): BlockJournal => ({
  height,
  transactions: [],
  blockChanges: [],
  mintedAtoken: 0n,
  burnedAtoken: 0n,
});

/** Reads of committed blocks; what is pruned throws HISTORY_PRUNED. */
export class BlockStore {
  private readonly blocks = new LRUCache<Height, CommittedBlock>({
    maxSize: CACHED_TRANSACTIONS,
    sizeCalculation: ({ block }) => block.transactions.length + 1,
  });

  constructor(
    private readonly database: Database,
    private readonly base: StoreBase,
  ) {}

  /** The last committed height, or undefined in an empty store. */
  tip(): Height | undefined {
    const bytes = this.database.get(storeKey("tip"));
    return bytes === undefined ? undefined : readHeight(bytes, 0);
  }

  /** The oldest height whose block is here; 0 where nothing is missing. */
  oldest(): Height {
    return this.base.get().base;
  }

  /**
   * Block, receipts and journal of a height; the caller has checked it against the head. The one
   * block that a node got without its journal (state sync) has an empty one: ask
   * `StoreBase.assertJournal` before reading it.
   */
  block(height: Height): CommittedBlock {
    this.base.assertBlock(height);
    const cached = this.blocks.get(height);
    if (cached !== undefined) return cached;
    const block = this.bareBlock(height);
    const committed = { block, receipts: this.receipts(height), journal: this.journal(block) };
    this.blocks.set(height, committed);
    return committed;
  }

  /**
   * The same past the cache and a part at a time, for who reads each block once and is in no hurry.
   * @param breathe called between the parts: each of a full block takes some ten milliseconds
   */
  async load(height: Height, breathe: () => Promise<void>): Promise<CommittedBlock> {
    const block = this.bareBlock(height);
    await breathe();
    const receipts = this.receipts(height);
    await breathe();
    return { block, receipts, journal: this.journal(block) };
  }

  /** Drops a block that was deleted from the cache. */
  forget(height: Height): void {
    this.blocks.delete(height);
  }

  /** Puts a block that was just committed into the cache. */
  remember(committed: CommittedBlock): void {
    this.blocks.set(committed.block.header.height, committed);
  }

  private bareBlock(height: Height): Block {
    return decodeBlock(this.need(storeKey("block", heightBytes(height)), height));
  }

  private receipts(height: Height): Receipt[] {
    return decodeReceipts(this.need(storeKey("receipts", heightBytes(height)), height));
  }

  private journal(block: Block): BlockJournal {
    const { height } = block.header;
    const hasNone = height !== 0 && height < this.base.get().journalBase;
    if (hasNone) return noJournal(height);
    return decodeJournal(this.need(storeKey("journal", heightBytes(height)), height), block);
  }

  private need(key: Buffer, height: Height): Buffer {
    const bytes = this.database.get(key);
    if (bytes === undefined) {
      throw new StoreError("STORE_CORRUPT", "a committed block is missing from the store", {
        details: { height },
      });
    }
    return bytes;
  }

  /** Height of a block hash. */
  heightOfHash(hash: Hash32): Height | undefined {
    const bytes = this.database.get(storeKey("blockHash", hexToBytes(hash)));
    return bytes === undefined ? undefined : readHeight(bytes, 0);
  }

  /** Hash of a committed block, without decoding it; there for `HASHES_BELOW_BASE` more. */
  hashOf(height: Height): Hash32 {
    if (height < this.base.get().base - HASHES_BELOW_BASE) this.base.assertBlock(height);
    return bytesToHash32(this.need(storeKey("heightHash", heightBytes(height)), height));
  }

  /** Location of a transaction by either of its hashes. */
  locate(space: "transaction" | "sdkTransaction", hash: Hash32): TransactionLocation | undefined {
    const bytes = this.database.get(storeKey(space, hexToBytes(hash)));
    if (bytes === undefined) return undefined;
    const height = readHeight(bytes, 0);
    return { height, index: bytes.readUInt32BE(8), blockHash: this.hashOf(height) };
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

  /** Text under a name of the meta space. */
  meta(name: string): string | undefined {
    return this.database.get(storeKey("meta", Buffer.from(name, "ascii")))?.toString("utf8");
  }
}
