/** Hex codecs of the EVM wire: `0x` quantities, `0x` data, and raw bytes. */
import { ChainError } from "./errors.js";

/** `0x`-prefixed lower-case hex of a whole number of bytes. */
export type Hex = `0x${string}`;

/** 32 bytes as `0x` + 64 lower-case hex digits: block, transaction, code hashes and storage words. */
export type Hash32 = Hex & { readonly __brand: "Hash32" };

/** A block's position in the chain; a safe integer >= 0. */
export type Height = number;

/** `keccak256("")`: the code hash of an account without code. */
export const EMPTY_CODE_HASH =
  "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470" as Hash32;

/** Root of an empty Merkle Patricia trie, `keccak256(rlp(""))`. */
export const EMPTY_TRIE_ROOT =
  "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421" as Hash32;

/** 32 zero bytes. */
export const ZERO_HASH = `0x${"00".repeat(32)}` as Hash32;

/** Up to here (addresses, hashes, words) a plain loop beats Buffer's encoder. */
const SHORT_BYTES = 64;

/** The two hex digits of each byte, as characters. */
const BYTE_DIGITS = Buffer.from(
  Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0")).join(""),
  "latin1",
);

/** The text that is being written: the prefix, and room for digits. */
const SHORT_TEXT = Buffer.from(`0x${"0".repeat(2 * SHORT_BYTES)}`, "latin1");

/** Bytes to `0x` hex. Zero bytes give `0x`. */
export function bytesToHex(bytes: Uint8Array): Hex {
  return hexAt(bytes, 0, bytes.length);
}

/**
 * The same of a range that is there whole, `end` not included. The prefix is written with the digits: added
 * to them, it would make a text of two parts, which everybody who looks into it has to put together.
 */
export function hexAt(bytes: Uint8Array, start: number, end: number): Hex {
  if (end - start > SHORT_BYTES) {
    return `0x${Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("hex")}`;
  }
  let next = 2;
  for (let at = start; at < end; at++, next += 2) {
    const digits = 2 * (bytes[at] ?? 0);
    SHORT_TEXT[next] = BYTE_DIGITS[digits] ?? 0;
    SHORT_TEXT[next + 1] = BYTE_DIGITS[digits + 1] ?? 0;
  }
  return SHORT_TEXT.toString("latin1", 0, next) as Hex;
}

/** Value of each hex digit by its character code. */
const DIGIT_VALUES = new Uint8Array(128);
for (let digit = 0; digit < 16; digit++) {
  DIGIT_VALUES[digit.toString(16).charCodeAt(0)] = digit;
  DIGIT_VALUES[digit.toString(16).toUpperCase().charCodeAt(0)] = digit;
}

/** Up to here (addresses, hashes) a plain loop beats Buffer's decoder. */
const SHORT_HEX_LENGTH = 66;

/** Trusted `0x` hex to bytes; for hex that a parser or encoder of ours produced. */
export function hexToBytes(hex: string): Uint8Array {
  if (hex.length > SHORT_HEX_LENGTH) {
    const buffer = Buffer.from(hex.slice(2), "hex");
    return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
  }
  const bytes = new Uint8Array((hex.length - 2) >> 1);
  writeHex(bytes, 0, hex);
  return bytes;
}

/** Writes the bytes of trusted `0x` hex at a place. @returns the place behind them */
export function writeHex(target: Uint8Array, start: number, hex: string): number {
  const end = start + ((hex.length - 2) >> 1);
  for (let place = start, at = 2; place < end; place++, at += 2) {
    const high = DIGIT_VALUES[hex.charCodeAt(at)] ?? 0;
    target[place] = (high << 4) | (DIGIT_VALUES[hex.charCodeAt(at + 1)] ?? 0);
  }
  return end;
}

/** 32 bytes to the branded hash form. Throws INVALID_HEX on another length. */
export function bytesToHash32(bytes: Uint8Array): Hash32 {
  if (bytes.length !== 32) {
    throw new ChainError("INVALID_HEX", `expected 32 bytes, got ${bytes.length}`);
  }
  return bytesToHex(bytes) as Hash32;
}

/**
 * Untrusted text to bytes. Accepts either case; needs the prefix and an even number of digits.
 * @throws INVALID_HEX
 */
export function parseHexBytes(text: unknown): Uint8Array {
  return hexToBytes(parseHex(text));
}

/** Untrusted text to lower-case `0x` hex of whole bytes. Throws INVALID_HEX. */
export function parseHex(text: unknown): Hex {
  if (typeof text !== "string" || !/^0x([0-9a-fA-F]{2})*$/.test(text)) {
    throw new ChainError("INVALID_HEX", "expected 0x-prefixed hex with an even number of digits");
  }
  return text.toLowerCase() as Hex;
}

/** Untrusted text to a 32-byte hash; any case is accepted. Throws INVALID_HEX. */
export function parseHash32(text: unknown): Hash32 {
  if (typeof text !== "string" || !/^0x[0-9a-fA-F]{64}$/.test(text)) {
    throw new ChainError("INVALID_HEX", "expected 0x followed by 64 hex digits");
  }
  return text.toLowerCase() as Hash32;
}

/** Unsigned number to an EVM quantity: `0x0`, no leading zeros. */
export function toQuantity(value: bigint | number): Hex {
  return `0x${value.toString(16)}`;
}

/** Trusted or node-made quantity to bigint. Throws INVALID_QUANTITY on anything else. */
export function parseQuantity(text: unknown): bigint {
  if (typeof text !== "string" || !/^0x[0-9a-fA-F]{1,64}$/.test(text)) {
    throw new ChainError("INVALID_QUANTITY", "expected a 0x-prefixed hex number");
  }
  return BigInt(text);
}

/** Quantity that must be a safe integer (heights, indices). Throws INVALID_QUANTITY. */
export function parseSafeQuantity(text: unknown): number {
  const value = parseQuantity(text);
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new ChainError("INVALID_QUANTITY", "number is above 2^53 - 1");
  }
  return Number(value);
}

/** The largest word of the EVM. */
export const MAX_WORD = (1n << 256n) - 1n;

/**
 * What a sum of claims comes to at most. A contract may log that an address gave all that there can be of a
 * token, a word, many times in one transaction: beyond it a claim cannot be true, and no column holds it.
 */
export function atMostWord(units: bigint): bigint {
  return units < MAX_WORD ? units : MAX_WORD;
}

const NO_BYTES = new Uint8Array(0);
const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);
const MAX_UINT32 = 2 ** 32 - 1;
const WORD_BYTES = 32;
/** The bytes that are written at the moment. */
const SHORTEST = new Uint8Array(WORD_BYTES);
/** The word that is read or written at the moment, 64 bits at a time. */
const WORD = new Uint8Array(WORD_BYTES);
const WORD_VIEW = new DataView(WORD.buffer);

/** Unsigned bigint to minimal big-endian bytes; zero gives no bytes (the RLP integer form). */
export function bigintToBytes(value: bigint): Uint8Array {
  if (value === 0n) return NO_BYTES;
  if (value <= MAX_WORD) return SHORTEST.slice(writeIntegerBefore(SHORTEST, WORD_BYTES, value));
  const digits = value.toString(16);
  return hexToBytes(`0x${digits.length % 2 === 0 ? digits : `0${digits}`}`);
}

/**
 * Writes these bytes of an unsigned integer, at most 2^256 - 1, so that they end at a place; of a number, a
 * safe one.
 * @returns where they begin
 * @throws RangeError for what is negative or a fraction: cut off, it would be another amount
 */
export function writeIntegerBefore(
  target: Uint8Array,
  end: number,
  value: bigint | number,
): number {
  let at = end;
  if (typeof value === "number" || value <= MAX_SAFE) {
    let rest = Number(value);
    if (!Number.isSafeInteger(rest) || rest < 0) throw new RangeError("not an unsigned integer");
    for (; rest > MAX_UINT32; rest = Math.floor(rest / 256)) target[--at] = rest % 256;
    for (; rest > 0; rest >>>= 8) target[--at] = rest & 0xff;
    return at;
  }
  fillWord(value);
  let first = 0;
  while (WORD[first] === 0) first++;
  for (let from = WORD_BYTES - 1; from >= first; from--) target[--at] = WORD[from] ?? 0;
  return at;
}

/** Bytes that are exact as a number. */
const NUMBER_BYTES = 6;

/** Big-endian bytes to unsigned bigint; no bytes give zero. */
export function bytesToBigint(bytes: Uint8Array): bigint {
  return bigintAt(bytes, 0, bytes.length);
}

/**
 * The same for a range of bytes that is there whole, `end` not included. Most words of the EVM are small
 * or hashes: four integers of 64 bits are far less work than a detour over digits.
 */
export function bigintAt(bytes: Uint8Array, start: number, end: number): bigint {
  let at = start;
  while (at < end && bytes[at] === 0) at++;
  const size = end - at;
  if (size <= NUMBER_BYTES) return BigInt(numberAt(bytes, at, end));
  // For more bytes than a word has, digits are the shorter way.
  if (size > WORD_BYTES) return BigInt(bytesToHex(bytes.subarray(at, end)));
  let place = 0;
  while (place < WORD_BYTES - size) WORD[place++] = 0;
  while (at < end) WORD[place++] = bytes[at++] ?? 0;
  const low = WORD_VIEW.getBigUint64(24);
  if (size <= 8) return low;
  const half = (WORD_VIEW.getBigUint64(16) << 64n) | low;
  if (size <= 16) return half;
  const high = (WORD_VIEW.getBigUint64(0) << 64n) | WORD_VIEW.getBigUint64(8);
  return (high << 128n) | half;
}

/** Up to `NUMBER_BYTES`, zeros where the bytes have ended. */
function numberAt(bytes: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) value = value * 256 + (bytes[at] ?? 0);
  return value;
}

/**
 * Unsigned bigint to 32 big-endian bytes.
 * @throws RangeError for what does not fit: cut off, it would be another amount
 */
export function bigintToWord(value: bigint): Uint8Array {
  if (value < 0n || value > MAX_WORD) throw new RangeError("no word of 256 bits holds the value");
  const bytes = new Uint8Array(WORD_BYTES);
  writeWord(bytes, 0, value);
  return bytes;
}

/**
 * Writes the 32 big-endian bytes of a value below 2^256 at an offset with room for them. A view of the
 * target for every word would cost more than the copy.
 */
export function writeWord(bytes: Uint8Array, offset: number, word: bigint): void {
  fillWord(word);
  for (let at = 0; at < WORD_BYTES; at++) bytes[offset + at] = WORD[at] ?? 0;
}

function fillWord(word: bigint): void {
  // Each takes the lowest 64 bits of what it is given.
  WORD_VIEW.setBigUint64(24, word);
  const high = word >> 64n;
  WORD_VIEW.setBigUint64(16, high);
  const isLong = high > 0n;
  WORD_VIEW.setBigUint64(8, isLong ? high >> 64n : 0n);
  WORD_VIEW.setBigUint64(0, isLong ? high >> 128n : 0n);
}

/** Byte-wise equality. */
export function bytesEqual(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && Buffer.compare(left, right) === 0;
}
