/** Blocks, receipts, journals and their indexes, by height and by hash. */
import { LRUCache } from "lru-cache";
import { heightBytes, readHeight } from "../../chain/height-bytes.js";
import { bytesToHash32, type Hash32, type Height, hexToBytes } from "../../chain/hex.js";
import { BLOOM_BYTES } from "../../chain/receipt.js";
import { decodeRlp, rlpInteger, rlpList } from "../../chain/rlp.js";
import type { Supply } from "../chain-view.js";
import type { CommittedBlock, TransactionLocation } from "../event-bus.js";
import { decodeBlock, decodeJournal, decodeReceipts } from "./block-codec.js";
import { type Database, StoreError, storeKey } from "./database.js";

/** Transactions' worth of decoded blocks that are kept; a transaction takes about 2 KiB. */
const CACHED_TRANSACTIONS = 100_000;

/** Reads of committed blocks. */
export class BlockStore {
  private readonly blocks = new LRUCache<Height, CommittedBlock>({
    maxSize: CACHED_TRANSACTIONS,
    sizeCalculation: ({ block }) => block.transactions.length + 1,
  });

  constructor(private readonly database: Database) {}

  /** The last committed height, or undefined in an empty store. */
  tip(): Height | undefined {
    const bytes = this.database.get(storeKey("tip"));
    return bytes === undefined ? undefined : readHeight(bytes, 0);
  }

  /** Block, receipts and journal of a height; the caller has checked it against the head. */
  block(height: Height): CommittedBlock {
    const cached = this.blocks.get(height);
    if (cached !== undefined) return cached;
    const at = heightBytes(height);
    const block = decodeBlock(this.need(storeKey("block", at), height));
    const committed: CommittedBlock = {
      block,
      receipts: decodeReceipts(this.need(storeKey("receipts", at), height)),
      journal: decodeJournal(this.need(storeKey("journal", at), height), block),
    };
    this.blocks.set(height, committed);
    return committed;
  }

  /** Puts a block that was just committed into the cache. */
  remember(committed: CommittedBlock): void {
    this.blocks.set(committed.block.header.height, committed);
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

  /** Hash of a committed block, without decoding it. */
  hashOf(height: Height): Hash32 {
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
  async *blooms(from: Height, to: Height): AsyncIterable<{ height: Height; bloom: Uint8Array }> {
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
