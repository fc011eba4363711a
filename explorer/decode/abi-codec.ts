/**
 * Values of Solidity's contract ABI from bytes and to bytes. Bytes are strangers': whatever does not
 * fit its type exactly is refused, and how much is read is bounded.
 * Source: Solidity's contract ABI specification.
 */
import { type Address, bytesToAddress } from "../../chain/address.js";
import { bytesToBigint, bytesToHex, type Hex, parseHexBytes } from "../../chain/hex.js";
import { parseJsonBody } from "../../runtime/http/http-body.js";
import { badRequest } from "../../web/errors.js";
import type { AbiParameter, AbiType } from "./abi-types.js";
import { readPayee } from "./identifiers.js";

/** A value as pages show it: whatever its type, one of a few kinds. */
export type AbiValue =
  | { readonly kind: "address"; readonly address: Address }
  | { readonly kind: "number"; readonly number: bigint }
  | { readonly kind: "text"; readonly text: string }
  /** `left` items more were not read. */
  | { readonly kind: "list"; readonly items: readonly AbiValue[]; readonly left?: number }
  | { readonly kind: "fields"; readonly fields: readonly NamedValue[] };

/** A value with its parameter's name, a stranger's text. */
export interface NamedValue {
  readonly name: string;
  readonly value: AbiValue;
}

const WORD = 32;

/** Items of one list that are read. */
const MAX_ITEMS = 32;

/** Values of one decoding: lists in lists multiply. */
const MAX_VALUES = 2_048;

/** Bytes of a text or of bytes that are read. */
const MAX_BYTES = 1_024;

/** Bytes of one encoding. */
const MAX_ENCODED_BYTES = 128 * 1024;

interface Budget {
  left: number;
}

/** Parameters from bytes; undefined where they do not fit. */
export function decodeParameters(
  parameters: readonly AbiParameter[],
  bytes: Uint8Array,
): readonly NamedValue[] | undefined {
  const types = parameters.map(({ type }) => type);
  const values = readSequence(types, bytes, { left: MAX_VALUES });
  if (values === undefined) return undefined;
  return parameters.flatMap(({ name }, index) => {
    const value = values[index];
    return value === undefined ? [] : [{ name, value }];
  });
}

/** Whether a type stands in a topic by its hash alone. */
export function isHashedInTopics(type: AbiType): boolean {
  return isDynamic(type) || type.kind === "array" || type.kind === "tuple";
}

/** One word as a value of a type that is one word; undefined where it cannot be of the type. */
export function decodeWord(type: AbiType, word: Uint8Array): AbiValue | undefined {
  if (word.length !== WORD) return undefined;
  const number = bytesToBigint(word);
  switch (type.kind) {
    case "address":
      if (number >> 160n !== 0n) return undefined;
      return { kind: "address", address: bytesToAddress(word.subarray(12)) };
    case "bool":
      return number > 1n ? undefined : { kind: "text", text: String(number === 1n) };
    case "uint":
      return number >> BigInt(type.bits) === 0n ? { kind: "number", number } : undefined;
    case "int": {
      const signed = BigInt.asIntN(256, number);
      return BigInt.asIntN(type.bits, signed) === signed
        ? { kind: "number", number: signed }
        : undefined;
    }
    case "fixed":
      if (word.subarray(type.bytes).some((byte) => byte !== 0)) return undefined;
      return { kind: "text", text: bytesToHex(word.subarray(0, type.bytes)) };
    default:
      return undefined;
  }
}

/** How a type lies in its sequence. */
interface Layout {
  /** Whether values stand behind the heads, which have their offset only. */
  readonly isDynamic: boolean;
  /** Bytes that a type takes in its sequence: a static one itself, a dynamic one its offset. */
  readonly headBytes: number;
}

/**
 * What is known of types: whoever has a contract verified chooses how large they are, and whoever calls it
 * how many values there are of each.
 */
const LAYOUTS = new WeakMap<AbiType, Layout>();

function layoutOf(type: AbiType): Layout {
  const known = LAYOUTS.get(type);
  if (known !== undefined) return known;
  const layout = isDynamicType(type)
    ? { isDynamic: true, headBytes: WORD }
    : { isDynamic: false, headBytes: staticBytes(type) };
  LAYOUTS.set(type, layout);
  return layout;
}

function isDynamic(type: AbiType): boolean {
  return layoutOf(type).isDynamic;
}

function headBytes(type: AbiType): number {
  return layoutOf(type).headBytes;
}

function isDynamicType(type: AbiType): boolean {
  switch (type.kind) {
    case "bytes":
    case "string":
      return true;
    case "array":
      return type.length === undefined || isDynamic(type.item);
    case "tuple":
      return type.fields.some(({ type: field }) => isDynamic(field));
    default:
      return false;
  }
}

function staticBytes(type: AbiType): number {
  if (type.kind === "array") return (type.length ?? 0) * headBytes(type.item);
  if (type.kind !== "tuple") return WORD;
  return type.fields.reduce((sum, { type: field }) => sum + headBytes(field), 0);
}

function readSequence(
  types: readonly AbiType[],
  bytes: Uint8Array,
  budget: Budget,
): AbiValue[] | undefined {
  const values: AbiValue[] = [];
  let at = 0;
  for (const type of types) {
    const size = headBytes(type);
    const head = bytes.subarray(at, at + size);
    if (head.length !== size) return undefined;
    at += size;
    const start = isDynamic(type) ? lengthOf(head, bytes.length) : undefined;
    if (isDynamic(type) && start === undefined) return undefined;
    const value = readValue(type, start === undefined ? head : bytes.subarray(start), budget);
    if (value === undefined) return undefined;
    values.push(value);
  }
  return values;
}

/** @param bytes from the value's own beginning on */
function readValue(type: AbiType, bytes: Uint8Array, budget: Budget): AbiValue | undefined {
  budget.left -= 1;
  if (budget.left < 0) return undefined;
  switch (type.kind) {
    case "bytes":
    case "string":
      return readBytes(type.kind, bytes);
    case "array":
      return readArray(type, bytes, budget);
    case "tuple": {
      const types = type.fields.map(({ type: field }) => field);
      const values = readSequence(types, bytes, budget);
      if (values === undefined) return undefined;
      const fields = type.fields.flatMap(({ name }, index) => {
        const value = values[index];
        return value === undefined ? [] : [{ name, value }];
      });
      return { kind: "fields", fields };
    }
    default:
      return decodeWord(type, bytes.subarray(0, WORD));
  }
}

function readBytes(kind: "bytes" | "string", bytes: Uint8Array): AbiValue | undefined {
  const length = lengthOf(bytes.subarray(0, WORD), bytes.length);
  if (length === undefined || WORD + length > bytes.length) return undefined;
  const content = bytes.subarray(WORD, WORD + Math.min(length, MAX_BYTES));
  const cut = length > MAX_BYTES ? "…" : "";
  const text = kind === "string" ? Buffer.from(content).toString("utf8") : bytesToHex(content);
  return { kind: "text", text: `${text}${cut}` };
}

function readArray(
  type: Extract<AbiType, { kind: "array" }>,
  bytes: Uint8Array,
  budget: Budget,
): AbiValue | undefined {
  const length = type.length ?? lengthOf(bytes.subarray(0, WORD), bytes.length);
  const body = type.length === undefined ? bytes.subarray(WORD) : bytes;
  if (length === undefined || length * headBytes(type.item) > body.length) return undefined;
  const count = Math.min(length, MAX_ITEMS);
  const types = Array.from({ length: count }, () => type.item);
  const items = readSequence(types, body, budget);
  if (items === undefined) return undefined;
  return length > count ? { kind: "list", items, left: length - count } : { kind: "list", items };
}

/** A length or an offset; undefined where it lies beyond `most`. */
function lengthOf(word: Uint8Array, most: number): number | undefined {
  if (word.length !== WORD) return undefined;
  const value = bytesToBigint(word);
  return value <= BigInt(most) ? Number(value) : undefined;
}

/**
 * Texts that a person wrote to bytes: numbers in decimal or as 0x, addresses in either form (a wrong
 * checksum says that one was mistyped), bytes as 0x, arrays as JSON lists, structs as JSON lists or
 * objects (numbers beyond 2^53 in quotes).
 * @throws BAD_REQUEST that names the parameter
 */
export function encodeTexts(parameters: readonly AbiParameter[], texts: readonly string[]): Hex {
  const values = parameters.map(({ name, type }, index) => {
    const text = texts[index] ?? "";
    const isPlain = type.kind !== "array" && type.kind !== "tuple";
    if (isPlain) return { name, type, given: type.kind === "string" ? text : text.trim() };
    try {
      return { name, type, given: parseJsonBody(Buffer.from(text, "utf8")) };
    } catch {
      throw badRequest(`${name}: not JSON, or with numbers beyond 2^53 that are not in quotes`);
    }
  });
  const encoded = writeSequence(values.map(({ type, given, name }) => ({ type, given, name })));
  if (encoded.length > MAX_ENCODED_BYTES) throw tooLong();
  return bytesToHex(encoded);
}

function tooLong(): Error {
  return badRequest("the arguments are too long");
}

interface Given {
  readonly name: string;
  readonly type: AbiType;
  readonly given: unknown;
}

function writeSequence(values: readonly Given[]): Buffer {
  // Each of them takes a word at least.
  if (values.length > MAX_ENCODED_BYTES / WORD) throw tooLong();
  const headSize = values.reduce((sum, { type }) => sum + headBytes(type), 0);
  const heads: Buffer[] = [];
  const tails: Buffer[] = [];
  let tailSize = 0;
  for (const value of values) {
    const written = writeValue(value);
    if (!isDynamic(value.type)) {
      heads.push(written);
      continue;
    }
    heads.push(wordOf(BigInt(headSize + tailSize)));
    tails.push(written);
    tailSize += written.length;
  }
  return Buffer.concat([...heads, ...tails]);
}

function writeValue({ name, type, given }: Given): Buffer {
  const why = type.kind === "address" ? "is no address, or its checksum is wrong" : "does not fit";
  const wrong = () =>
    badRequest(`${name}: ${(JSON.stringify(given) ?? "nothing").slice(0, 60)} ${why}`);
  switch (type.kind) {
    case "array": {
      if (!Array.isArray(given)) throw wrong();
      if (type.length !== undefined && given.length !== type.length) throw wrong();
      const items = given.map((one: unknown) => ({ name, type: type.item, given: one }));
      const body = writeSequence(items);
      return type.length === undefined ? Buffer.concat([wordOf(BigInt(items.length)), body]) : body;
    }
    case "tuple": {
      const parts = partsOf(given, type.fields);
      if (parts === undefined) throw wrong();
      return writeSequence(
        type.fields.map((field, index) => ({
          name: `${name}.${field.name}`,
          type: field.type,
          given: parts[index],
        })),
      );
    }
    case "bytes":
    case "string": {
      const content = contentOf(type.kind, given);
      if (content === undefined) throw wrong();
      const padding = Buffer.alloc((WORD - (content.length % WORD)) % WORD);
      return Buffer.concat([wordOf(BigInt(content.length)), content, padding]);
    }
    default: {
      const word = elementaryWord(type, given);
      if (word === undefined) throw wrong();
      return word;
    }
  }
}

function partsOf(given: unknown, fields: readonly AbiParameter[]): readonly unknown[] | undefined {
  if (Array.isArray(given)) return given.length === fields.length ? given : undefined;
  if (typeof given !== "object" || given === null) return undefined;
  const entries = new Map<string, unknown>(Object.entries(given));
  const hasAll = entries.size === fields.length && fields.every(({ name }) => entries.has(name));
  return hasAll ? fields.map(({ name }) => entries.get(name)) : undefined;
}

function contentOf(kind: "bytes" | "string", given: unknown): Buffer | undefined {
  if (typeof given !== "string") return undefined;
  if (kind === "string") return Buffer.from(given, "utf8");
  return /^0x([0-9a-f]{2})*$/i.test(given) ? Buffer.from(given.slice(2), "hex") : undefined;
}

function elementaryWord(type: AbiType, given: unknown): Buffer | undefined {
  switch (type.kind) {
    case "address": {
      const address = typeof given === "string" ? readPayee(given) : undefined;
      return address === undefined ? undefined : wordOf(BigInt(address));
    }
    case "bool":
      if (given === true || given === "true" || given === "1") return wordOf(1n);
      return given === false || given === "false" || given === "0" ? wordOf(0n) : undefined;
    case "uint":
    case "int": {
      const number = numberOf(given);
      if (number === undefined) return undefined;
      const kept =
        type.kind === "uint" ? BigInt.asUintN(type.bits, number) : BigInt.asIntN(type.bits, number);
      return kept === number ? wordOf(BigInt.asUintN(256, number)) : undefined;
    }
    case "fixed": {
      const bytes = typeof given === "string" ? hexBytes(given) : undefined;
      if (bytes?.length !== type.bytes) return undefined;
      return Buffer.concat([bytes, Buffer.alloc(WORD - bytes.length)]);
    }
    default:
      return undefined;
  }
}

function hexBytes(text: string): Uint8Array | undefined {
  return /^0x([0-9a-f]{2})*$/i.test(text) ? parseHexBytes(text) : undefined;
}

/** Exact or not at all: a number of JSON beyond 2^53 was changed before it came here. */
function numberOf(given: unknown): bigint | undefined {
  if (typeof given === "number") return Number.isSafeInteger(given) ? BigInt(given) : undefined;
  if (typeof given !== "string") return undefined;
  return /^(-?[0-9]{1,78}|0x[0-9a-f]{1,64})$/i.test(given) ? BigInt(given) : undefined;
}

function wordOf(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(2 * WORD, "0"), "hex");
}
