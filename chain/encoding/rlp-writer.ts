/** Recursive Length Prefix, written: every value has exactly one encoding. */
import { present } from "../errors.js";
import { bigintToBytes, type Hex, MAX_WORD, writeHex, writeIntegerBefore } from "../hex.js";
import type { Slab } from "./slab.js";

/** What is encoded already, and becomes a part of an encoding as it is. */
export class RlpEncoded {
  constructor(readonly bytes: Uint8Array) {}
}

/** What can be encoded: bytes, as such or as `0x` text; unsigned integers; lists of all of these. */
export type RlpInput = Uint8Array | Hex | bigint | number | RlpEncoded | readonly RlpInput[];

/** Where first bytes of strings begin. */
export const RLP_STRING = 0x80;
/** Where first bytes of lists begin. */
export const RLP_LIST = 0xc0;

function lengthOfLength(length: number): number {
  if (length < 0x100) return 1;
  if (length < 0x1_0000) return 2;
  if (length < 0x100_0000) return 3;
  return 4;
}

/** Length of the encoding of a list, or of a string of two bytes or more, of so many bytes. */
export function rlpSizeBytes(payload: number): number {
  return payload < 56 ? 1 + payload : 1 + lengthOfLength(payload) + payload;
}

/** Length of the encoding of a string of bytes. */
export function rlpStringSizeBytes(bytes: Uint8Array): number {
  return bytes.length === 1 && (bytes[0] ?? 0) < RLP_STRING ? 1 : rlpSizeBytes(bytes.length);
}

/**
 * Writes how long a list or a string of two bytes or more is, without its content.
 * @param offset RLP_STRING or RLP_LIST
 * @returns the place behind it
 */
export function writeRlpHeader(
  target: Uint8Array,
  at: number,
  length: number,
  offset: number,
): number {
  if (length < 56) {
    target[at] = offset + length;
    return at + 1;
  }
  const width = lengthOfLength(length);
  target[at] = offset + 55 + width;
  for (let index = 0; index < width; index++) {
    target[at + width - index] = (length >>> (8 * index)) & 0xff;
  }
  return at + 1 + width;
}

/** Writes a string of bytes. @returns the place behind it */
export function writeRlpString(target: Uint8Array, start: number, bytes: Uint8Array): number {
  if (bytes.length === 1 && (bytes[0] ?? 0) < RLP_STRING) {
    target[start] = bytes[0] ?? 0;
    return start + 1;
  }
  return copy(target, writeRlpHeader(target, start, bytes.length, RLP_STRING), bytes);
}

/** Up to here a loop beats `set`, for the short items that make up most of what is encoded. */
const LOOPED_BYTES = 40;

function copy(target: Uint8Array, at: number, bytes: Uint8Array): number {
  if (bytes.length > LOOPED_BYTES) target.set(bytes, at);
  else {
    for (let index = 0; index < bytes.length; index++) target[at + index] = bytes[index] ?? 0;
  }
  return at + bytes.length;
}

/** Room that is kept between encodings; what a longer one needed is given back. */
const KEPT_BYTES = 256 * 1024;

/** Longest header, or integer with its header. */
const SHORT_ITEM_BYTES = 40;

/**
 * Writes an encoding from its last byte to its first: when the length of a list is written, its items are
 * there, and nothing has to be measured before.
 */
class Writer {
  private bytes = new Uint8Array(KEPT_BYTES);
  /** Where the first byte is that was written last. */
  private at = KEPT_BYTES;

  /** @param slab where the encoding is put; absent: an array of its own */
  encoding(input: RlpInput, slab: Slab | undefined): Uint8Array {
    this.at = this.bytes.length;
    this.write(input);
    const encoding = this.taken(slab);
    if (this.bytes.length > KEPT_BYTES) this.bytes = new Uint8Array(KEPT_BYTES);
    return encoding;
  }

  private taken(slab: Slab | undefined): Uint8Array {
    const { bytes, at } = this;
    if (slab === undefined) return bytes.slice(at);
    const target = slab.take(bytes.length - at);
    if (target.length > LOOPED_BYTES) target.set(bytes.subarray(at));
    else for (let index = 0; index < target.length; index++) target[index] = bytes[at + index] ?? 0;
    return target;
  }

  private write(input: RlpInput): void {
    if (typeof input === "bigint" || typeof input === "number") this.writeInteger(input);
    else if (typeof input === "string") this.writeText(input);
    else if (input instanceof Uint8Array) this.writeString(input);
    else if (input instanceof RlpEncoded) this.writeBytes(input.bytes);
    else {
      const behind = this.bytes.length - this.at;
      for (let index = input.length - 1; index >= 0; index--) this.write(itemAt(input, index));
      this.writeHeader(this.bytes.length - this.at - behind, RLP_LIST);
    }
  }

  private writeInteger(value: bigint | number): void {
    if (value > MAX_WORD) return this.writeString(bigintToBytes(BigInt(value)));
    this.makeRoom(SHORT_ITEM_BYTES);
    const end = this.at;
    this.at = writeIntegerBefore(this.bytes, end, value);
    this.closeString(end);
  }

  private writeText(text: Hex): void {
    const sizeBytes = (text.length - 2) >> 1;
    this.makeRoom(sizeBytes);
    const end = this.at;
    this.at = end - sizeBytes;
    writeHex(this.bytes, this.at, text);
    this.closeString(end);
  }

  private writeString(bytes: Uint8Array): void {
    this.writeBytes(bytes);
    this.closeString(this.at + bytes.length);
  }

  private writeBytes(bytes: Uint8Array): void {
    this.makeRoom(bytes.length);
    this.at -= bytes.length;
    copy(this.bytes, this.at, bytes);
  }

  /** Puts a header before a string that ends at a place; a byte below 0x80 needs none. */
  private closeString(end: number): void {
    const sizeBytes = end - this.at;
    if (sizeBytes === 1 && (this.bytes[this.at] ?? 0) < RLP_STRING) return;
    this.writeHeader(sizeBytes, RLP_STRING);
  }

  private writeHeader(length: number, offset: number): void {
    this.makeRoom(SHORT_ITEM_BYTES);
    this.at -= rlpSizeBytes(length) - length;
    writeRlpHeader(this.bytes, this.at, length, offset);
  }

  /** Room before what is written, which moves to the end of more. */
  private makeRoom(sizeBytes: number): void {
    const { bytes, at } = this;
    if (at >= sizeBytes) return;
    const written = bytes.length - at;
    this.bytes = new Uint8Array(2 * (written + sizeBytes));
    this.at = this.bytes.length - written;
    this.bytes.set(bytes.subarray(at), this.at);
  }
}

function itemAt(items: readonly RlpInput[], index: number): RlpInput {
  return present(items[index], "item of a list");
}

const writer = new Writer();

/**
 * Encodes bytes, integers or nested lists.
 * @param slab where the encoding is put; absent: an array of its own
 */
export function encodeRlp(input: RlpInput, slab?: Slab): Uint8Array {
  return writer.encoding(input, slab);
}

/** Wraps already encoded items into one list; used where items are cached encoded. */
export function encodeRlpListOfEncoded(items: readonly Uint8Array[]): Uint8Array {
  let payload = 0;
  for (const item of items) payload += item.length;
  const target = new Uint8Array(rlpSizeBytes(payload));
  let next = writeRlpHeader(target, 0, payload, RLP_LIST);
  for (const item of items) {
    target.set(item, next);
    next += item.length;
  }
  return target;
}
