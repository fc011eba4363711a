/**
 * The mempool's journal in the node's store: durable before a transaction's hash is answered. One
 * record per group commit, deleted when none of its transactions is in the pool any more; a
 * restart tells mined ones by the chain's index and removed ones by their own records.
 */
import { type Address, addressToBytes, bytesToAddress } from "../../chain/address.js";
import { bigintToBytes, type Hash32, hexToBytes } from "../../chain/hex.js";
import { keccak256Hex } from "../../chain/crypto.js";
import {
  decodeRlp,
  encodeRlp,
  type RlpItem,
  rlpBytes,
  rlpInteger,
  rlpList,
} from "../../chain/rlp.js";
import { type Database, KEY_SPACE, storeKey, type StoreWrite } from "./database.js";

/** One journalled transaction; the same shape as the mempool's port asks for. */
export interface StoredPoolEntry {
  readonly hash: Hash32;
  readonly raw: Uint8Array;
  readonly from: Address;
  readonly receivedAtMs: number;
  readonly sequence: number;
}

/** A record and those of its transactions that are still in the pool. */
interface Group {
  readonly key: Buffer;
  readonly waiting: Set<Hash32>;
  /** Hashes that have a record of their own in "poolRemoved". */
  readonly removed: Hash32[];
}

/** Journal over the key spaces "pool" and "poolRemoved". */
export class PoolStore {
  private readonly groups = new Map<Hash32, Group>();

  /**
   * @param isMined whether the chain's index knows the transaction
   */
  constructor(
    private readonly database: Database,
    private readonly isMined: (hash: Hash32) => boolean,
  ) {}

  /** Adds the entries as one record that is on disk when the promise resolves. */
  async append(entries: readonly StoredPoolEntry[]): Promise<void> {
    const [first] = entries;
    if (first === undefined) return;
    const key = groupKey(first.sequence);
    await this.database.write([{ key, value: encodeRlp(entries.map(encodeEntry)) }], {
      durable: true,
    });
    this.track(key, entries);
  }

  private track(key: Buffer, entries: readonly StoredPoolEntry[]): void {
    const group: Group = { key, waiting: new Set(entries.map(({ hash }) => hash)), removed: [] };
    for (const { hash } of entries) this.groups.set(hash, group);
  }

  /** Transactions left the pool otherwise than by a block; they must not come back. */
  async remove(hashes: readonly Hash32[]): Promise<void> {
    const writes: StoreWrite[] = [];
    for (const hash of hashes) {
      const group = this.groups.get(hash);
      if (group === undefined) continue;
      group.removed.push(hash);
      const key = storeKey("poolRemoved", hexToBytes(hash));
      writes.push({ key, value: new Uint8Array(0) });
    }
    await this.database.write([...writes, ...this.release(hashes)], { durable: true });
  }

  /** A committed block took these; records that are done with go away. */
  async mined(hashes: readonly Hash32[]): Promise<void> {
    const writes = this.release(hashes);
    if (writes.length > 0) await this.database.write(writes, { durable: false });
  }

  private release(hashes: readonly Hash32[]): StoreWrite[] {
    const writes: StoreWrite[] = [];
    for (const hash of hashes) {
      const group = this.groups.get(hash);
      if (group === undefined) continue;
      this.groups.delete(hash);
      group.waiting.delete(hash);
      if (group.waiting.size > 0) continue;
      writes.push({ key: group.key, value: undefined });
      for (const removed of group.removed) {
        writes.push({ key: storeKey("poolRemoved", hexToBytes(removed)), value: undefined });
      }
    }
    return writes;
  }

  /** Everything that is still to be mined, in the order of receipt. */
  async *load(): AsyncIterable<StoredPoolEntry> {
    const range = { from: storeKey("pool"), to: Buffer.from([KEY_SPACE.pool + 1]) };
    for await (const [key, value] of this.database.entries(range)) {
      if (key[0] !== KEY_SPACE.pool) continue;
      const entries = rlpList(decodeRlp(value)).map(decodeEntry);
      const left = entries.filter(({ hash }) => !this.isMined(hash) && !this.isRemoved(hash));
      this.track(Buffer.from(key), left);
      yield* left;
    }
  }

  private isRemoved(hash: Hash32): boolean {
    return this.database.get(storeKey("poolRemoved", hexToBytes(hash))) !== undefined;
  }
}

function groupKey(firstSequence: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(firstSequence));
  return storeKey("pool", bytes);
}

function encodeEntry(entry: StoredPoolEntry): Uint8Array[] {
  return [
    entry.raw,
    addressToBytes(entry.from),
    bigintToBytes(BigInt(entry.receivedAtMs)),
    bigintToBytes(BigInt(entry.sequence)),
  ];
}

function decodeEntry(item: RlpItem): StoredPoolEntry {
  const [rawItem, from, receivedAtMs, sequence] = rlpList(item);
  const raw = rlpBytes(rawItem);
  return {
    hash: keccak256Hex(raw),
    raw,
    from: bytesToAddress(rlpBytes(from)),
    receivedAtMs: Number(rlpInteger(receivedAtMs)),
    sequence: Number(rlpInteger(sequence)),
  };
}
