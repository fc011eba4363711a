/** Recursive Length Prefix, read strictly: every value has exactly one accepted encoding. */
import { ChainError } from "../errors.js";
import { bigintAt, bytesToBigint } from "../hex.js";
import { readRlp, type RlpReader } from "./rlp-reader.js";

/** A decoded item: bytes, or a list of items. */
export type RlpItem = Uint8Array | RlpItem[];

/** Deepest list nesting that is decoded; access lists need 3, blocks 4. */
const MAX_DEPTH = 8;

/**
 * Decodes exactly one item that fills the input.
 * Refused: trailing bytes, non-minimal lengths, a single byte below 0x80 with a prefix.
 * @param mostItems lists and bytes in all; an item of a megabyte may hold a million, half a kilobyte each
 * @throws INVALID_RLP
 */
export function decodeRlp(bytes: Uint8Array, mostItems = Number.POSITIVE_INFINITY): RlpItem {
  let count = 0;
  const readItem = (reader: RlpReader, depth: number): RlpItem => {
    if (depth > MAX_DEPTH) throw new ChainError("INVALID_RLP", "lists are nested too deeply");
    count += 1;
    if (count > mostItems) throw new ChainError("INVALID_RLP", "there are too many items");
    return reader.isList ? reader.items((within) => readItem(within, depth + 1)) : reader.bytes();
  };
  return readRlp(bytes, (reader) => readItem(reader, 0));
}

/**
 * The items of one list, each as it is encoded, with nothing inside them read: who wants one of
 * many decodes that one. The bytes are in place, not copied.
 * @throws INVALID_RLP unless the input is exactly one list whose items lie end to end
 */
export function encodedRlpItems(bytes: Uint8Array): Uint8Array[] {
  return readRlp(bytes, (reader) => reader.items((within) => within.encoded()));
}

/** The item as bytes. Throws INVALID_RLP if it is a list. */
export function rlpBytes(item: RlpItem | undefined): Uint8Array {
  if (!(item instanceof Uint8Array)) throw new ChainError("INVALID_RLP", "expected bytes");
  return item;
}

/** The item as a list. Throws INVALID_RLP if it is bytes. */
export function rlpList(item: RlpItem | undefined): RlpItem[] {
  if (!Array.isArray(item)) throw new ChainError("INVALID_RLP", "expected a list");
  return item;
}

/** The item as an unsigned integer without leading zeros, at most `maxBytes` long. */
export function rlpInteger(item: RlpItem | undefined, maxBytes = 32): bigint {
  const bytes = rlpBytes(item);
  if (bytes.length > maxBytes || bytes[0] === 0) {
    throw new ChainError("INVALID_RLP", "integer is too long or has leading zeros");
  }
  return bytesToBigint(bytes);
}

const NOTHING = new Uint8Array(0);

/** Longest list or item, in bytes of length, that `FlatList` reads: 64 KiB fit. */
const FLAT_LENGTH_WIDTH = 2;

/**
 * Where the items of a list of byte strings lie in its encoding, found without making an object
 * for each: one is made for lists of `count` items and used again and again.
 */
export class FlatList {
  private readonly starts: Int32Array;
  private readonly ends: Int32Array;
  private bytes: Uint8Array = NOTHING;
  /** The same bytes with Buffer's conversions. */
  private buffer: Buffer = Buffer.alloc(0);
  /** Where the header that was read last ends, and what it announces. */
  private start = 0;
  private end = 0;

  constructor(private readonly count: number) {
    this.starts = new Int32Array(count);
    this.ends = new Int32Array(count);
  }

  /**
   * Looks at one encoding; the other methods speak of it until the next. False unless it is
   * exactly a list of `count` byte strings that `decodeRlp` takes: ask that one what is wrong,
   * or for items of 64 KiB and more.
   */
  read(bytes: Uint8Array): boolean {
    this.bytes = bytes;
    this.buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (!this.header(0, 0xc0, bytes.length) || this.end !== bytes.length) return false;
    let next = this.start;
    for (let index = 0; index < this.count; index++) {
      const first = bytes[next] ?? 0;
      if (first < 0x80 && next < bytes.length) {
        this.start = next;
        this.end = next + 1;
      } else if (!this.header(next, 0x80, bytes.length) || this.isPaddedByte()) {
        return false;
      }
      this.starts[index] = this.start;
      this.ends[index] = this.end;
      next = this.end;
    }
    return next === bytes.length;
  }

  /** The item's bytes, in place; all empty ones are one object. */
  item(index: number): Uint8Array {
    const isEmpty = this.starts[index] === this.ends[index];
    return isEmpty ? NOTHING : this.bytes.subarray(this.starts[index], this.ends[index]);
  }

  /** Length of the item in bytes. */
  size(index: number): number {
    return (this.ends[index] ?? 0) - (this.starts[index] ?? 0);
  }

  /** True for an unsigned integer without leading zeros, at most `maxBytes` long. */
  isInteger(index: number, maxBytes = 32): boolean {
    const start = this.starts[index] ?? 0;
    const size = (this.ends[index] ?? 0) - start;
    return size === 0 || (size <= maxBytes && this.bytes[start] !== 0);
  }

  /** Value of an item for which `isInteger` holds. */
  integer(index: number): bigint {
    return bigintAt(this.bytes, this.starts[index] ?? 0, this.ends[index] ?? 0);
  }

  /** The item as lower-case hex digits. */
  hex(index: number): string {
    return this.buffer.toString("hex", this.starts[index], this.ends[index]);
  }

  /** The first `count` items, at least one, as they are encoded. */
  encodedFirst(count: number): Uint8Array {
    const first = this.bytes[0] ?? 0;
    return this.bytes.subarray(first <= 0xf7 ? 1 : first - 0xf6, this.ends[count - 1]);
  }

  /** Reads a header of strings (offset 0x80) or lists (0xc0) and checks that all is there. */
  private header(at: number, offset: number, limit: number): boolean {
    const short = (this.bytes[at] ?? 0) - offset;
    if (at >= limit || short < 0 || short >= 64) return false;
    let start = at + 1;
    let length = short;
    if (short >= 56) {
      const width = short - 55;
      if (width > FLAT_LENGTH_WIDTH || start + width > limit || this.bytes[start] === 0) {
        return false;
      }
      length = 0;
      for (let index = 0; index < width; index++) {
        length = length * 256 + (this.bytes[start + index] ?? 0);
      }
      if (length < 56) return false;
      start += width;
    }
    this.start = start;
    this.end = start + length;
    return this.end <= limit;
  }

  /** A byte below 0x80 is its own encoding. */
  private isPaddedByte(): boolean {
    return this.end - this.start === 1 && (this.bytes[this.start] ?? 0) < 0x80;
  }
}
