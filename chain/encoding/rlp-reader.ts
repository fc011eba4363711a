/**
 * Reading Recursive Length Prefix in place, from front to back: of a stored page of transactions most
 * items are a word each, and an object for each would cost more than what is in it. As strict as it is
 * everywhere: every value has exactly one accepted encoding.
 */
import { ChainError } from "../errors.js";
import { bigintAt, type Hex, hexAt } from "../hex.js";

const NOTHING = new Uint8Array(0);

/** Bytes of the largest number that is exact as such. */
const NUMBER_BYTES = 7;

function refused(reason: string): ChainError {
  return new ChainError("INVALID_RLP", reason);
}

/**
 * What `read` makes of exactly these bytes.
 * @throws INVALID_RLP, and what `read` throws
 */
export function readRlp<T>(bytes: Uint8Array, read: (reader: RlpReader) => T): T {
  const reader = new RlpReader(bytes);
  const value = read(reader);
  reader.finish();
  return value;
}

/**
 * One encoding, and how far it is read. Each method takes the next item of the list that is being read, and
 * throws INVALID_RLP where there is none or where it is something else; then nothing more can be asked.
 */
export class RlpReader {
  private readonly source: Uint8Array;
  /** The same bytes with Buffer's conversions. */
  private readonly buffer: Buffer;
  /** Where the next item begins, and where the last one of this list ends. */
  private at = 0;
  private end: number;
  /** Where the content of the item that was looked at last begins. */
  private start = 0;

  /** @param bytes are not copied: what is given of them lies in them */
  constructor(bytes: Uint8Array) {
    this.source = bytes;
    this.buffer = Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.end = bytes.length;
  }

  /** Whether another item follows in the list that is being read. */
  get hasMore(): boolean {
    return this.at < this.end;
  }

  /** Whether that item is a list. */
  get isList(): boolean {
    return (this.buffer[this.at] ?? 0) >= 0xc0;
  }

  /** A string of bytes, in place. */
  bytes(): Uint8Array {
    const stop = this.string();
    return this.start === stop ? NOTHING : this.source.subarray(this.start, stop);
  }

  /** A string of exactly so many bytes, as `0x` and lower-case digits. */
  hex(sizeBytes: number): Hex {
    const stop = this.string();
    if (stop - this.start !== sizeBytes) {
      throw refused(`expected ${sizeBytes} bytes, got ${stop - this.start}`);
    }
    return hexAt(this.source, this.start, stop);
  }

  /** The same, or nothing where the string is empty. */
  optionalHex(sizeBytes: number): Hex | undefined {
    if (this.buffer[this.at] !== 0x80 || !this.hasMore) return this.hex(sizeBytes);
    this.at += 1;
    return undefined;
  }

  /** A string of bytes as text. */
  text(encoding: "ascii" | "utf8"): string {
    const stop = this.string();
    return this.start === stop ? "" : this.buffer.toString(encoding, this.start, stop);
  }

  /** An unsigned integer without leading zeros, at most `maxBytes` long. */
  integer(maxBytes = 32): bigint {
    const stop = this.integerEnd(maxBytes);
    return bigintAt(this.buffer, this.start, stop);
  }

  /** One below 2^53, as a number; what is larger would be rounded, and is refused. */
  number(): number {
    const stop = this.integerEnd(NUMBER_BYTES);
    let value = 0;
    for (let at = this.start; at < stop; at++) value = value * 256 + (this.buffer[at] ?? 0);
    if (value > Number.MAX_SAFE_INTEGER) throw refused("a number is above 2^53 - 1");
    return value;
  }

  /** A list whose items `read` takes, all of them. */
  list<T>(read: (reader: this) => T): T {
    const outer = this.end;
    const stop = this.header();
    if ((this.buffer[this.at] ?? 0) < 0xc0) throw refused("expected a list");
    this.at = this.start;
    this.end = stop;
    const value = read(this);
    if (this.at !== stop) throw refused("a list has more items than it should");
    this.end = outer;
    return value;
  }

  /**
   * Goes into a list that fills what is being read, for who takes its items one by one and with
   * pauses: it is at its end where nothing follows.
   */
  enter(): void {
    const stop = this.header();
    if ((this.buffer[this.at] ?? 0) < 0xc0) throw refused("expected a list");
    if (stop !== this.end) throw refused("bytes follow the item");
    this.at = this.start;
  }

  /** A list of items of one kind, at most so many. */
  items<T>(read: (reader: this) => T, mostItems = Number.POSITIVE_INFINITY): T[] {
    return this.list(() => {
      const items: T[] = [];
      while (this.at < this.end) {
        if (items.length === mostItems) throw refused("there are too many items");
        items.push(read(this));
      }
      return items;
    });
  }

  /** Where the next item begins, in bytes from the first one. */
  get offset(): number {
    return this.at;
  }

  /** Passes over an item, with nothing inside it read. */
  skip(): void {
    this.at = this.header();
  }

  /** An item as it is encoded, in place, with nothing inside it read. */
  encoded(): Uint8Array {
    const first = this.at;
    this.skip();
    return this.source.subarray(first, this.at);
  }

  /** @throws INVALID_RLP where something follows */
  finish(): void {
    if (this.at !== this.end) throw refused("bytes follow the item");
  }

  private string(): number {
    const stop = this.header();
    if ((this.buffer[this.at] ?? 0) >= 0xc0) throw refused("expected bytes");
    this.at = stop;
    return stop;
  }

  private integerEnd(maxBytes: number): number {
    const stop = this.string();
    if (stop - this.start > maxBytes || (stop > this.start && this.buffer[this.start] === 0)) {
      throw refused("integer is too long or has leading zeros");
    }
    return stop;
  }

  /** Looks where the next item's content begins. @returns where it ends */
  private header(): number {
    const { buffer, at, end } = this;
    if (at >= end) throw refused("item is missing");
    const first = buffer[at] ?? 0;
    if (first < 0x80) {
      this.start = at;
      return at + 1;
    }
    const isList = first >= 0xc0;
    let length = first - (isList ? 0xc0 : 0x80);
    let start = at + 1;
    if (length >= 56) {
      const width = length - 55;
      length = this.longLength(start, width);
      start += width;
    }
    const stop = start + length;
    if (stop > end) throw refused("item is cut short");
    if (!isList && length === 1 && (buffer[start] ?? 0) < 0x80) {
      throw refused("single byte is not minimal");
    }
    this.start = start;
    return stop;
  }

  private longLength(at: number, width: number): number {
    const { buffer } = this;
    if (width > 4 || at + width > this.end) throw refused("length out of range");
    let length = 0;
    for (let index = 0; index < width; index++) length = length * 256 + (buffer[at + index] ?? 0);
    if (buffer[at] === 0 || length < 56) throw refused("length is not minimal");
    return length;
  }
}
