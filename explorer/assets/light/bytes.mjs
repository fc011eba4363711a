/** Bytes and the encodings of them that proofs are made of: hex, base64, RLP, protobuf. */

/** A proof that does not hold; the message says which step. */
export class NotProven extends Error {}

/** @throws NotProven */
export function check(condition, reason) {
  if (!condition) throw new NotProven(reason);
}

/** Hex with or without `0x` to bytes. */
export function fromHex(text) {
  const digits = typeof text === "string" ? text.replace(/^0x/, "") : "?";
  check(/^([0-9a-fA-F]{2})*$/.test(digits), "something is no hex");
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** Bytes to lower-case hex without prefix. */
export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Base64 to bytes. */
export function fromBase64(text) {
  check(typeof text === "string" && /^[A-Za-z0-9+/]*={0,2}$/.test(text), "something is no base64");
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** All bytes in one row. */
export function concat(...parts) {
  const whole = new Uint8Array(parts.reduce((size, { length }) => size + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Whether two texts or bytes are the same. */
export function same(left, right) {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}

/** Big-endian bytes to a number of any size. */
export function toBigint(bytes) {
  return bytes.length === 0 ? 0n : BigInt(`0x${toHex(bytes)}`);
}

/** RLP to byte strings and lists (Ethereum's yellow paper, appendix B); nothing may be left over. */
export function decodeRlp(bytes) {
  const [item, end] = readItem(bytes, 0, 0);
  check(end === bytes.length, "RLP with bytes behind it");
  return item;
}

/** Deeper lists than any that is read here. */
const MAX_DEPTH = 16;

function readItem(bytes, at, depth) {
  check(at < bytes.length && depth < MAX_DEPTH, "RLP that ends too early");
  const first = bytes[at];
  if (first < 0x80) return [bytes.subarray(at, at + 1), at + 1];
  const isList = first >= 0xc0;
  const base = isList ? 0xc0 : 0x80;
  let start = at + 1;
  let size = first - base;
  if (size > 55) {
    const sizeBytes = size - 55;
    start += sizeBytes;
    size = Number(toBigint(bytes.subarray(at + 1, start)));
  }
  const end = start + size;
  check(end <= bytes.length, "RLP that ends too early");
  if (!isList) return [bytes.subarray(start, end), end];
  const items = [];
  for (let next = start; next < end; ) {
    const [item, after] = readItem(bytes, next, depth + 1);
    items.push(item);
    next = after;
  }
  return [items, end];
}

/** The items of an RLP list as they are encoded, each with its content where it is a byte string. */
export function splitRlp(bytes) {
  const items = [];
  const [, end] = readItem(bytes, 0, 0);
  check(bytes[0] >= 0xc0 && end === bytes.length, "RLP that is no list");
  for (let at = 1 + (bytes[0] > 0xf7 ? bytes[0] - 0xf7 : 0); at < end; ) {
    const [item, after] = readItem(bytes, at, 1);
    items.push({ encoded: bytes.subarray(at, after), content: Array.isArray(item) ? null : item });
    at = after;
  }
  return items;
}

/** RLP of a byte string, or of a list of items that are encoded already. */
export function encodeRlp(item) {
  if (!Array.isArray(item)) {
    if (item.length === 1 && item[0] < 0x80) return item;
    return concat(rlpHead(0x80, item.length), item);
  }
  const body = concat(...item);
  return concat(rlpHead(0xc0, body.length), body);
}

function rlpHead(base, size) {
  if (size <= 55) return Uint8Array.of(base + size);
  const digits = size.toString(16);
  const sizeBytes = fromHex(digits.length % 2 === 0 ? digits : `0${digits}`);
  return concat(Uint8Array.of(base + 55 + sizeBytes.length), sizeBytes);
}

/** A whole number as a protobuf varint (int64: negative ones as 64 bits). */
export function varint(value) {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes = [];
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return Uint8Array.of(...bytes, Number(rest));
}

/** Field of a whole number; zero is left out. */
export function integerField(field, value) {
  return BigInt(value) === 0n ? new Uint8Array(0) : concat(varint(field << 3), varint(value));
}

/** Field of eight bytes (sfixed64); zero is left out. */
export function fixedField(field, value) {
  if (BigInt(value) === 0n) return new Uint8Array(0);
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigInt64(0, BigInt(value), true);
  return concat(varint((field << 3) | 1), bytes);
}

/** Field of a message, present even when it is empty. */
export function messageField(field, bytes) {
  return concat(varint((field << 3) | 2), varint(bytes.length), bytes);
}

/** Field of bytes or text; empty is left out. */
export function bytesField(field, value) {
  const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
  return bytes.length === 0 ? new Uint8Array(0) : messageField(field, bytes);
}
