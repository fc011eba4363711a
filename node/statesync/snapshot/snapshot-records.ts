/**
 * Records of a snapshot and their chunks. A record is a key and a value; keys ascend over the whole
 * snapshot, so the same state always gives the same chunks. A key is a byte for the kind, then:
 * slice of the block's or the receipts' encoding: its number, 4 bytes; account: address; storage:
 * address, slot; code: its hash. A chunk is rlp([[key, value], ...]); no record spans two.
 */
import { MAX_BLOCK_BYTES } from "../../../chain/consensus/consensus-block.js";
import { readRlp } from "../../../chain/encoding/rlp-reader.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import { ChainError } from "../../../chain/errors.js";
import { snapshotInvalid } from "./snapshot-error.js";
import { MAX_CHUNK_BYTES } from "./snapshot-manifest.js";

/** Kinds of records, in their order: what proves the rest comes first. */
export const RECORD_KIND = { block: 1, receipts: 2, account: 3, storage: 4, code: 5 } as const;

/** Number of a kind. */
export type RecordKind = (typeof RECORD_KIND)[keyof typeof RECORD_KIND];

/** One piece of a snapshot. */
export interface SnapshotRecord {
  readonly kind: RecordKind;
  /** The key without its first byte. */
  readonly id: Buffer;
  readonly value: Uint8Array;
}

/** Bytes of an id, by kind. */
const ID_BYTES: Readonly<Record<RecordKind, number>> = { 1: 4, 2: 4, 3: 20, 4: 52, 5: 32 };

/** A chunk is closed when the next record would bring it above this. */
export const CHUNK_BYTES = 1024 * 1024;

/** Lengths in front of key, value and record. */
const RECORD_OVERHEAD_BYTES = 12;

/** Bytes of a block's or its receipts' encoding in one record: two fit into a chunk. */
const SLICE_BYTES = 500 * 1024;

/** The kinds that come in slices. */
type SliceKind = (typeof RECORD_KIND)["block" | "receipts"];

/**
 * Most bytes of an encoded block: beside each Cosmos transaction lies its result, which is shorter. And of
 * its receipts: by its gas, 8 a byte, a block has 75 MB of logs at most.
 */
const MAX_ENCODED_BYTES: Readonly<Record<SliceKind, number>> = {
  [RECORD_KIND.block]: 2 * MAX_BLOCK_BYTES,
  [RECORD_KIND.receipts]: 256 * 1024 * 1024,
};

/** Collects records in their order into chunks. */
export class ChunkBuilder {
  private records: [Uint8Array, Uint8Array][] = [];
  private sizeBytes = 0;

  /**
   * Adds a record.
   * @returns the chunk that was full before, if there was one
   */
  add({ kind, id, value }: SnapshotRecord): Uint8Array | undefined {
    const sizeBytes = 1 + id.length + value.length + RECORD_OVERHEAD_BYTES;
    if (sizeBytes > MAX_CHUNK_BYTES) throw new RangeError("a record is larger than a chunk");
    const isFull = this.records.length > 0 && this.sizeBytes + sizeBytes > CHUNK_BYTES;
    const chunk = isFull ? this.finish() : undefined;
    this.records.push([Buffer.concat([Uint8Array.of(kind), id]), value]);
    this.sizeBytes += sizeBytes;
    return chunk;
  }

  /** What was collected since the last chunk; undefined for nothing. */
  finish(): Uint8Array | undefined {
    if (this.records.length === 0) return undefined;
    const chunk = encodeRlp(this.records);
    this.records = [];
    this.sizeBytes = 0;
    return chunk;
  }
}

/** An encoding in records. */
export function slicesOf(kind: SliceKind, bytes: Uint8Array): SnapshotRecord[] {
  const records: SnapshotRecord[] = [];
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    const id = Buffer.alloc(4);
    id.writeUInt32BE(records.length);
    records.push({ kind, id, value: bytes.subarray(at, at + SLICE_BYTES) });
  }
  return records;
}

/** Reads chunks one after the other and sees to it that their keys ascend. */
export class ChunkReader {
  private last: Uint8Array = new Uint8Array(0);

  /**
   * Records of the next chunk.
   * @throws SNAPSHOT_INVALID
   */
  read(chunk: Uint8Array): SnapshotRecord[] {
    if (chunk.length > MAX_CHUNK_BYTES) throw snapshotInvalid("a chunk is too long");
    const records = parseChunk(chunk, (key, value) => this.record(key, value));
    if (records.length === 0) throw snapshotInvalid("a chunk is empty");
    return records;
  }

  private record(key: Uint8Array, value: Uint8Array): SnapshotRecord {
    const kind = kindOf(key[0]);
    if (key.length !== 1 + ID_BYTES[kind]) throw snapshotInvalid("the length of a key");
    if (Buffer.compare(this.last, key) >= 0) throw snapshotInvalid("keys do not ascend");
    this.last = key;
    return { kind, id: Buffer.from(key.buffer, key.byteOffset + 1, key.length - 1), value };
  }
}

/** An encoding that comes in pieces. */
export class Slices {
  private readonly slices: Uint8Array[] = [];
  private sizeBytes = 0;

  constructor(private readonly kind: SliceKind) {}

  /** Takes the next piece. Throws SNAPSHOT_INVALID. */
  add(id: Buffer, slice: Uint8Array): void {
    if (id.readUInt32BE(0) !== this.slices.length) throw snapshotInvalid("a slice is missing");
    this.sizeBytes += slice.length;
    if (this.sizeBytes > MAX_ENCODED_BYTES[this.kind]) {
      const what = this.kind === RECORD_KIND.block ? "the block is" : "the receipts are";
      throw snapshotInvalid(`${what} too long`);
    }
    this.slices.push(slice);
  }

  /** All of it; nothing is left here. */
  join(): Uint8Array {
    const whole = Buffer.concat(this.slices);
    this.slices.length = 0;
    return whole;
  }
}

/** Each record is looked at before the next one is read: a chunk of nothings would be millions of them. */
function parseChunk(
  chunk: Uint8Array,
  recordOf: (key: Uint8Array, value: Uint8Array) => SnapshotRecord,
): SnapshotRecord[] {
  try {
    return readRlp(chunk, (all) =>
      all.items((reader) => reader.list(() => recordOf(reader.bytes(), reader.bytes()))),
    );
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    throw snapshotInvalid("a chunk cannot be read", error);
  }
}

function kindOf(byte: number | undefined): RecordKind {
  const known = Object.values(RECORD_KIND).find((kind) => kind === byte);
  if (known === undefined) throw snapshotInvalid("a record of an unknown kind");
  return known;
}
