/** Recursive Length Prefix, strict: every value has exactly one accepted encoding. */
import { ChainError } from "./errors.js";

/** A decoded item: bytes, or a list of items. */
export type RlpItem = Uint8Array | RlpItem[];

/** What can be encoded; nested lists as arrays. */
export type RlpInput = Uint8Array | readonly RlpInput[];

/** Deepest list nesting that is decoded; access lists need 3, blocks 4. */
const MAX_DEPTH = 8;

function lengthOfLength(length: number): number {
  if (length < 0x100) return 1;
  if (length < 0x1_0000) return 2;
  if (length < 0x100_0000) return 3;
  return 4;
}

function sizeWithHeader(payload: number): number {
  return payload < 56 ? 1 + payload : 1 + lengthOfLength(payload) + payload;
}

/**
 * Size of the encoding. Payload sizes of lists are kept in the order in which `write` meets the
 * lists, so that deep nesting is measured once.
 */
function measure(input: RlpInput, listSizes: number[]): number {
  if (input instanceof Uint8Array) {
    return input.length === 1 && (input[0] ?? 0) < 0x80 ? 1 : sizeWithHeader(input.length);
  }
  const slot = listSizes.push(0) - 1;
  let payload = 0;
  for (const item of input) payload += measure(item, listSizes);
  listSizes[slot] = payload;
  return sizeWithHeader(payload);
}

function writeHeader(target: Uint8Array, at: number, length: number, offset: number): number {
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

/** Writes one encoding and goes on after it. */
class Writer {
  private at = 0;
  private list = 0;

  constructor(
    private readonly target: Uint8Array,
    private readonly listSizes: readonly number[],
  ) {}

  write(input: RlpInput): void {
    if (input instanceof Uint8Array) {
      if (input.length === 1 && (input[0] ?? 0) < 0x80) {
        this.target[this.at++] = input[0] ?? 0;
        return;
      }
      this.at = writeHeader(this.target, this.at, input.length, 0x80);
      this.copy(input);
      return;
    }
    this.at = writeHeader(this.target, this.at, this.listSizes[this.list++] ?? 0, 0xc0);
    for (const item of input) this.write(item);
  }

  /** A loop beats `set` for the short items that make up most of what is encoded. */
  private copy(bytes: Uint8Array): void {
    if (bytes.length > 40) this.target.set(bytes, this.at);
    else {
      for (let index = 0; index < bytes.length; index++) {
        this.target[this.at + index] = bytes[index] ?? 0;
      }
    }
    this.at += bytes.length;
  }
}

/** Encodes bytes or nested lists. */
export function encodeRlp(input: RlpInput): Uint8Array {
  const listSizes: number[] = [];
  const target = new Uint8Array(measure(input, listSizes));
  new Writer(target, listSizes).write(input);
  return target;
}

/** Wraps already encoded items into one list; used where items are cached encoded. */
export function encodeRlpListOfEncoded(items: readonly Uint8Array[]): Uint8Array {
  let payload = 0;
  for (const item of items) payload += item.length;
  const target = new Uint8Array(sizeWithHeader(payload));
  let next = writeHeader(target, 0, payload, 0xc0);
  for (const item of items) {
    target.set(item, next);
    next += item.length;
  }
  return target;
}

/**
 * Decodes exactly one item that fills the input.
 * Refused: trailing bytes, non-minimal lengths, a single byte below 0x80 with a prefix.
 * @throws INVALID_RLP
 */
export function decodeRlp(bytes: Uint8Array): RlpItem {
  const [item, end] = readItem(bytes, 0, bytes.length, 0);
  if (end !== bytes.length) throw new ChainError("INVALID_RLP", "bytes follow the item");
  return item;
}

function readLength(bytes: Uint8Array, at: number, width: number, end: number): number {
  if (width > 4 || at + width > end) throw new ChainError("INVALID_RLP", "length out of range");
  let length = 0;
  for (let index = 0; index < width; index++) length = length * 256 + (bytes[at + index] ?? 0);
  if (bytes[at] === 0 || length < 56) {
    throw new ChainError("INVALID_RLP", "length is not minimal");
  }
  return length;
}

function readItem(bytes: Uint8Array, at: number, end: number, depth: number): [RlpItem, number] {
  if (at >= end) throw new ChainError("INVALID_RLP", "item is missing");
  if (depth > MAX_DEPTH) throw new ChainError("INVALID_RLP", "lists are nested too deeply");
  const first = bytes[at] ?? 0;
  if (first < 0x80) return [bytes.subarray(at, at + 1), at + 1];
  const isList = first >= 0xc0;
  const short = first - (isList ? 0xc0 : 0x80);
  let start = at + 1;
  let length = short;
  if (short >= 56) {
    const width = short - 55;
    length = readLength(bytes, start, width, end);
    start += width;
  }
  const stop = start + length;
  if (stop > end) throw new ChainError("INVALID_RLP", "item is cut short");
  if (!isList) {
    if (length === 1 && (bytes[start] ?? 0) < 0x80) {
      throw new ChainError("INVALID_RLP", "single byte is not minimal");
    }
    return [bytes.subarray(start, stop), stop];
  }
  const items: RlpItem[] = [];
  let next = start;
  while (next < stop) {
    const [item, after] = readItem(bytes, next, stop, depth + 1);
    items.push(item);
    next = after;
  }
  return [items, stop];
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
  return bytes.length === 0 ? 0n : BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
}
