/**
 * The mempool's journal in the node's store: durable before a transaction's hash is answered. A group
 * commit has a record, or several small ones; each is deleted when none of its transactions is in the
 * pool any more. A restart tells mined ones by the chain's index and removed ones by their own records.
 */
import { type Address, bytesToAddress } from "../../chain/address.js";
import { hashOfRaw } from "../../chain/cosmos/cosmos-transaction.js";
import { bytesToHash32, type Hash32 } from "../../chain/hex.js";
import {
  decodeRlp,
  type RlpItem,
  rlpBytes,
  rlpInteger,
  rlpList,
} from "../../chain/encoding/rlp.js";
import { encodeRlp, type RlpInput } from "../../chain/encoding/rlp-writer.js";
import { Slices } from "../../runtime/process/slices.js";
import { type Database, storeKey, type StoreWrite } from "./database.js";
import { PoolOutcomes, type StoredPoolOutcome } from "./pool-outcomes.js";

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
  /** All transactions of the record. */
  readonly hashes: readonly Hash32[];
  readonly waiting: Set<Hash32>;
}

/** Transactions whose records are deleted in one write: about a millisecond. */
const DELETED_AT_ONCE = 512;

/**
 * Bytes of a record, one of a larger transaction alone excepted. One that waits for hours keeps what came
 * with it on the disk: whoever sends small ones behind a gap, which cost nothing, must not keep much.
 */
const RECORD_BYTES = 16 * 1024;

/** Journal over the key spaces "pool" and "poolRemoved". */
export class PoolStore {
  /** The newest record of each waiting transaction. */
  private readonly groups = new Map<Hash32, Group>();
  /** How many records on disk hold a transaction: it may be dropped and sent again. */
  private readonly recordCounts = new Map<Hash32, number>();
  /** Transactions that a record on disk holds and that must not come back. */
  private readonly markers = new Set<Hash32>();
  /** Whose markers stay when no record needs them any more. */
  private readonly fates = new PoolOutcomes();

  /** Highest number in any record that was read. */
  private readSequence = -1;

  /**
   * @param isMined whether the chain's index knows the transaction
   */
  constructor(
    private readonly database: Database,
    private readonly isMined: (hash: Hash32) => boolean,
  ) {}

  /**
   * Adds the entries, and marks those that made room for them as dropped, in one write that is on disk
   * when the promise resolves.
   */
  async append(
    entries: readonly StoredPoolEntry[],
    dropped: ReadonlyMap<Hash32, StoredPoolOutcome> = new Map(),
  ): Promise<void> {
    // One that was removed before is in the pool again: its marker must go in the same write.
    const returned = entries
      .map(({ hash }) => hash)
      .filter((hash) => this.markers.has(hash) || this.fates.has(hash));
    const records = recordsOf(entries);
    await this.database.write(
      [
        ...records.map(({ key, own }) => ({ key, value: encodeRlp(own.map(encodeEntry)) })),
        ...returned.map((hash) => ({ key: markerKey(hash), value: undefined })),
        ...this.marks([...dropped.keys()], dropped),
      ],
      { durable: true },
    );
    for (const hash of returned) {
      this.markers.delete(hash);
      this.fates.delete(hash);
    }
    for (const { key, own } of records) {
      this.track(key, own, new Set(own.map(({ hash }) => hash)));
    }
    await this.noteRemoved([...dropped.keys()]);
  }

  private marks(
    hashes: readonly Hash32[],
    outcomes: ReadonlyMap<Hash32, StoredPoolOutcome>,
  ): StoreWrite[] {
    return hashes.map((hash) => {
      return { key: markerKey(hash), value: this.fates.add(hash, outcomes.get(hash)) };
    });
  }

  private async noteRemoved(hashes: readonly Hash32[]): Promise<void> {
    if (hashes.length === 0) return;
    // Mined while it was written: no record brings it back any more, and its fate is told. Where
    // no fate is kept the marker on disk must be known, or the same bytes would come back under it.
    for (const hash of hashes) {
      if (this.recordCounts.has(hash) || !this.fates.has(hash)) this.markers.add(hash);
    }
    await this.forget(hashes);
    await this.forgetOldFates();
  }

  private track(key: Buffer, entries: readonly StoredPoolEntry[], waiting: Set<Hash32>): Group {
    const group: Group = { key, hashes: entries.map(({ hash }) => hash), waiting };
    for (const hash of group.hashes) {
      this.recordCounts.set(hash, (this.recordCounts.get(hash) ?? 0) + 1);
      if (!waiting.has(hash)) continue;
      // An older record of the same transaction has nothing to wait for any more.
      this.groups.get(hash)?.waiting.delete(hash);
      this.groups.set(hash, group);
    }
    return group;
  }

  /** Transactions left the pool otherwise than by a block; they must not come back. */
  async remove(
    hashes: readonly Hash32[],
    outcomes: ReadonlyMap<Hash32, StoredPoolOutcome> = new Map(),
  ): Promise<void> {
    await this.database.write(this.marks(hashes, outcomes), { durable: true });
    await this.noteRemoved(hashes);
  }

  /** What became of the last ones that were removed, oldest first; `load` reads it. */
  outcomes(): ReadonlyMap<Hash32, StoredPoolOutcome> {
    return this.fates.all();
  }

  /** The highest number of any record, also of what is mined or marked; -1 for none; `load` reads it. */
  lastSequence(): number {
    return this.readSequence;
  }

  /** A committed block took these; records that are done with go away. */
  mined(hashes: readonly Hash32[]): Promise<void> {
    return this.forget(hashes);
  }

  /** In slices: a block has thousands. What is deleted of some is nothing to the others. */
  private async forget(hashes: readonly Hash32[]): Promise<void> {
    const slices = new Slices();
    let [done, count]: [Group[], number] = [[], 0];
    for (const hash of hashes) {
      const pause = slices.pause();
      if (pause !== undefined) await pause;
      const group = this.groups.get(hash);
      if (group === undefined) continue;
      this.groups.delete(hash);
      group.waiting.delete(hash);
      if (group.waiting.size > 0) continue;
      done.push(group);
      count += group.hashes.length;
      if (count >= DELETED_AT_ONCE) {
        await this.deleteRecords(done);
        [done, count] = [[], 0];
      }
    }
    await this.deleteRecords(done);
  }

  /** Deletes records, and the markers of transactions that no other record holds. */
  private async deleteRecords(groups: readonly Group[]): Promise<void> {
    const writes: StoreWrite[] = [];
    for (const { key, hashes } of groups) {
      writes.push({ key, value: undefined });
      for (const hash of hashes) {
        const count = this.recordCounts.get(hash);
        if (count === undefined) throw new RangeError("a record of the pool was never counted");
        const left = count - 1;
        if (left > 0) this.recordCounts.set(hash, left);
        else this.recordCounts.delete(hash);
        if (left > 0 || !this.markers.delete(hash) || this.fates.has(hash)) continue;
        writes.push({ key: markerKey(hash), value: undefined });
      }
    }
    if (writes.length > 0) await this.database.write(writes, { durable: false });
  }

  /** Everything that is still to be mined, in the order of receipt; tidies up what is not. */
  async *load(): AsyncIterable<StoredPoolEntry> {
    const marked: (readonly [Hash32, Uint8Array])[] = [];
    for await (const [key, value] of this.database.entries(spaceRange("poolRemoved"))) {
      const hash = bytesToHash32(key.subarray(1));
      this.markers.add(hash);
      // The chain tells what became of one that was mined after all.
      if (!this.isMined(hash)) marked.push([hash, value]);
    }
    this.fates.restore(marked);
    const done: Group[] = [];
    for await (const [key, value] of this.database.entries(spaceRange("pool"))) {
      const entries = rlpList(decodeRlp(value)).map(decodeEntry);
      // A record is named by its first entry's number, which is not its highest.
      for (const { sequence } of entries) {
        this.readSequence = Math.max(this.readSequence, sequence);
      }
      const left = entries.filter(({ hash }) => !this.isMined(hash) && !this.markers.has(hash));
      const waiting = new Set(left.map(({ hash }) => hash));
      const group = this.track(Buffer.from(key), entries, waiting);
      if (left.length === 0) done.push(group);
      yield* left;
    }
    await this.deleteRecords(done);
    const stray = [...this.markers].filter((hash) => !this.recordCounts.has(hash));
    for (const hash of stray) this.markers.delete(hash);
    await this.deleteMarkers(stray.filter((hash) => !this.fates.has(hash)));
    await this.forgetOldFates();
  }

  private async forgetOldFates(): Promise<void> {
    await this.deleteMarkers(this.fates.evict().filter((hash) => !this.markers.has(hash)));
  }

  private async deleteMarkers(hashes: readonly Hash32[]): Promise<void> {
    const writes = hashes.map((hash) => ({ key: markerKey(hash), value: undefined }));
    if (writes.length > 0) await this.database.write(writes, { durable: false });
  }
}

/** Neighbours in records of a bounded size, each under the number of its first. */
function recordsOf(
  entries: readonly StoredPoolEntry[],
): readonly { readonly key: Buffer; readonly own: readonly StoredPoolEntry[] }[] {
  const records: { readonly key: Buffer; readonly own: StoredPoolEntry[] }[] = [];
  let roomBytes = 0;
  for (const entry of entries) {
    let record = records.at(-1);
    if (record === undefined || entry.raw.length > roomBytes) {
      record = { key: groupKey(entry.sequence), own: [] };
      records.push(record);
      roomBytes = RECORD_BYTES;
    }
    record.own.push(entry);
    roomBytes -= entry.raw.length;
  }
  return records;
}

function markerKey(hash: Hash32): Buffer {
  return storeKey("poolRemoved", hash);
}

function spaceRange(space: "pool" | "poolRemoved"): { from: Buffer; to: Buffer } {
  const longest = Buffer.alloc(33, 0xff);
  return { from: storeKey(space), to: storeKey(space, longest) };
}

function groupKey(firstSequence: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(firstSequence));
  return storeKey("pool", bytes);
}

function encodeEntry(entry: StoredPoolEntry): RlpInput {
  return [entry.raw, entry.from, entry.receivedAtMs, entry.sequence];
}

function decodeEntry(item: RlpItem): StoredPoolEntry {
  const [rawItem, from, receivedAtMs, sequence] = rlpList(item);
  const raw = rlpBytes(rawItem);
  return {
    hash: hashOfRaw(raw),
    raw,
    from: bytesToAddress(rlpBytes(from)),
    receivedAtMs: Number(rlpInteger(receivedAtMs)),
    sequence: Number(rlpInteger(sequence)),
  };
}
