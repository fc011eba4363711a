/**
 * Values in PostgreSQL's binary formats, written into bytes one behind the other. The server reads them as
 * they are; of a text it would have to read each number, hex digit and escape again.
 * Source: the `*_recv` function of each type.
 */
import { writeHex } from "../../chain/hex.js";

/** The length that means NULL. */
const NULL_BYTES = -1;

/** A text up to here is given room for three bytes a character, the most there are in UTF-8. */
const SHORT_TEXT = 1_024;

/** A text of ASCII alone up to here is written sooner than a call out of JavaScript returns. */
const TINY_TEXT = 72;

const LAST_ASCII = 127;

/** Values of the upper half of an int8. */
const HIGH = 2 ** 32;

/** Unix time of 2000-01-01, from which the server counts. */
const EPOCH_MS = 946_684_800_000;

/** A numeric is made of groups of four decimal digits. */
const GROUP = 10_000;
const GROUP_DIGITS = 4;
const NEGATIVE = 0x4000;
const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** Groups of the number that is being written, the lowest first; of 2^256 there are twenty. */
const groups: number[] = [];

/** Bytes that grow; what they are of is the business of who makes one. */
export abstract class BinaryValues {
  protected piece: Buffer = Buffer.alloc(0);
  protected used = 0;

  /** Makes room for so many bytes behind what is there, which is more than the piece has left. */
  protected abstract grow(sizeBytes: number): void;

  protected addNull(): void {
    this.addInt32(NULL_BYTES);
  }

  protected addHex(hex: string): void {
    const sizeBytes = (hex.length - 2) >> 1;
    this.addInt32(sizeBytes);
    this.room(sizeBytes);
    this.used = writeHex(this.piece, this.used, hex);
  }

  /** @param prefix a byte before the text; without it there is none */
  protected addText(text: string, prefix?: number): void {
    const prefixBytes = prefix === undefined ? 0 : 1;
    const mostBytes = text.length <= SHORT_TEXT ? 3 * text.length : Buffer.byteLength(text);
    this.room(4 + prefixBytes + mostBytes);
    const start = this.used;
    const from = start + 4 + prefixBytes;
    if (prefix !== undefined) this.piece[start + 4] = prefix;
    const sizeBytes = writeTiny(this.piece, from, text) ?? this.piece.write(text, from);
    this.used = start;
    this.addInt32(prefixBytes + sizeBytes);
    this.used = from + sizeBytes;
  }

  protected addInt2(value: number): void {
    this.addInt32(2);
    this.room(2);
    this.used = this.piece.writeInt16BE(value, this.used);
  }

  protected addInt4(value: number): void {
    this.addInt32(4);
    this.addInt32(value);
  }

  protected addInt8(value: number | bigint): void {
    this.addInt32(8);
    this.room(8);
    if (typeof value === "number" && Number.isSafeInteger(value)) {
      const high = Math.floor(value / HIGH);
      const at = this.piece.writeInt32BE(high, this.used);
      this.used = this.piece.writeUInt32BE(value - high * HIGH, at);
    } else {
      this.used = this.piece.writeBigInt64BE(BigInt(value), this.used);
    }
  }

  /** @param valueMs Unix milliseconds */
  protected addTimestamp(valueMs: number): void {
    this.addInt8(BigInt(valueMs - EPOCH_MS) * 1_000n);
  }

  protected addBoolean(value: boolean): void {
    this.addInt32(1);
    this.room(1);
    this.used = this.piece.writeUInt8(value ? 1 : 0, this.used);
  }

  /** How many groups, the place of the first before the point, the sign, digits behind the point; groups. */
  protected addNumeric(value: bigint): void {
    const isNegative = value < 0n;
    const count = splitIntoGroups(isNegative ? -value : value);
    const sizeBytes = 8 + 2 * count;
    this.addInt32(sizeBytes);
    this.room(sizeBytes);
    const { piece } = this;
    let at = piece.writeInt16BE(count, this.used);
    at = piece.writeInt16BE(Math.max(count - 1, 0), at);
    at = piece.writeUInt16BE(isNegative ? NEGATIVE : 0, at);
    at = piece.writeInt16BE(0, at);
    for (let index = count - 1; index >= 0; index--) {
      at = piece.writeInt16BE(groups[index] ?? 0, at);
    }
    this.used = at;
  }

  /** A length, or a number of what is around the values. */
  protected addInt32(value: number): void {
    this.room(4);
    this.used = this.piece.writeInt32BE(value, this.used);
  }

  protected room(sizeBytes: number): void {
    if (this.used + sizeBytes > this.piece.length) this.grow(sizeBytes);
  }
}

/** @returns bytes written, where there is room for them; undefined for what is long or not ASCII alone */
function writeTiny(into: Buffer, from: number, text: string): number | undefined {
  const { length } = text;
  if (length > TINY_TEXT) return undefined;
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index);
    if (code > LAST_ASCII) return undefined;
    into[from + index] = code;
  }
  return length;
}

/** @returns how many groups of `groups` are this number's; none of zero */
function splitIntoGroups(value: bigint): number {
  let count = 0;
  if (value <= SAFE) {
    for (let rest = Number(value); rest > 0; rest = Math.floor(rest / GROUP)) {
      groups[count++] = rest % GROUP;
    }
    return count;
  }
  // A division of a long number for each group would cost more than its decimal digits.
  const digits = value.toString();
  for (let end = digits.length; end > 0; end -= GROUP_DIGITS) {
    let group = 0;
    for (let at = Math.max(0, end - GROUP_DIGITS); at < end; at++) {
      group = 10 * group + digits.charCodeAt(at) - 48;
    }
    groups[count++] = group;
  }
  return count;
}
