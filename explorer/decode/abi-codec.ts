/**
 * Values of contracts as pages show them, and what people type as arguments. Bytes are strangers':
 * whatever does not fit its type exactly is refused, and how much is read is bounded.
 */
import type { Address } from "../../chain/address.js";
import {
  arrayBytes,
  contentBytes,
  type EncodedValue,
  headBytes,
  isDynamic,
  sequenceBytes,
} from "../../chain/evm/abi/abi-layout.js";
import type { AbiParameter, AbiType, ArrayType, WordType } from "../../chain/evm/abi/abi-types.js";
import {
  readSize,
  readWord,
  WORD_BYTES,
  type WordValue,
  writeWord,
} from "../../chain/evm/abi/abi-words.js";
import { bytesToHex, type Hex } from "../../chain/hex.js";
import { parseJsonBody } from "../../runtime/http/http-body.js";
import { badRequest } from "../../web/errors.js";
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
  return readNamed(parameters, bytes, { left: MAX_VALUES });
}

/** One word as a value of a type; undefined where it cannot be of the type. */
export function decodeWord(type: WordType, word: Uint8Array): AbiValue | undefined {
  const value = word.length === WORD_BYTES ? readWord(type, word) : undefined;
  switch (typeof value) {
    case "undefined":
      return undefined;
    case "string":
      return { kind: "address", address: value };
    case "bigint":
      return { kind: "number", number: value };
    case "boolean":
      return { kind: "text", text: String(value) };
    default:
      return { kind: "text", text: bytesToHex(value) };
  }
}

function readNamed(
  parameters: readonly AbiParameter[],
  bytes: Uint8Array,
  budget: Budget,
): readonly NamedValue[] | undefined {
  const types = parameters.map(({ type }) => type);
  const values = readSequence(types, bytes, budget);
  if (values === undefined) return undefined;
  return parameters.flatMap(({ name }, index) => {
    const value = values[index];
    return value === undefined ? [] : [{ name, value }];
  });
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
    const start = isDynamic(type) ? readSize(head, bytes.length) : undefined;
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
      const fields = readNamed(type.fields, bytes, budget);
      return fields === undefined ? undefined : { kind: "fields", fields };
    }
    default:
      return decodeWord(type, bytes.subarray(0, WORD_BYTES));
  }
}

function readBytes(kind: "bytes" | "string", bytes: Uint8Array): AbiValue | undefined {
  const length = readSize(bytes.subarray(0, WORD_BYTES), bytes.length);
  if (length === undefined || WORD_BYTES + length > bytes.length) return undefined;
  const content = bytes.subarray(WORD_BYTES, WORD_BYTES + Math.min(length, MAX_BYTES));
  const cut = length > MAX_BYTES ? "…" : "";
  const text = kind === "string" ? Buffer.from(content).toString("utf8") : bytesToHex(content);
  return { kind: "text", text: `${text}${cut}` };
}

function readArray(type: ArrayType, bytes: Uint8Array, budget: Budget): AbiValue | undefined {
  const length = type.length ?? readSize(bytes.subarray(0, WORD_BYTES), bytes.length);
  const body = type.length === undefined ? bytes.subarray(WORD_BYTES) : bytes;
  if (length === undefined || length * headBytes(type.item) > body.length) return undefined;
  const count = Math.min(length, MAX_ITEMS);
  const types = Array.from({ length: count }, () => type.item);
  const items = readSequence(types, body, budget);
  if (items === undefined) return undefined;
  return length > count ? { kind: "list", items, left: length - count } : { kind: "list", items };
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
  const encoded = sequenceBytes(writeValues(values));
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

function writeValues(values: readonly Given[]): readonly EncodedValue[] {
  // Each of them takes a word at least.
  if (values.length > MAX_ENCODED_BYTES / WORD_BYTES) throw tooLong();
  return values.map((value) => ({ type: value.type, bytes: writeValue(value) }));
}

function writeValue({ name, type, given }: Given): Uint8Array {
  const why = type.kind === "address" ? "is no address, or its checksum is wrong" : "does not fit";
  const wrong = () =>
    badRequest(`${name}: ${(JSON.stringify(given) ?? "nothing").slice(0, 60)} ${why}`);
  switch (type.kind) {
    case "array": {
      if (!Array.isArray(given)) throw wrong();
      if (type.length !== undefined && given.length !== type.length) throw wrong();
      const items = given.map((one: unknown) => ({ name, type: type.item, given: one }));
      return arrayBytes(type, writeValues(items));
    }
    case "tuple": {
      const parts = partsOf(given, type.fields);
      if (parts === undefined) throw wrong();
      const fields = type.fields.map((field, index) => ({
        name: `${name}.${field.name}`,
        type: field.type,
        given: parts[index],
      }));
      return sequenceBytes(writeValues(fields));
    }
    case "bytes":
    case "string": {
      const content = contentOf(type.kind, given);
      if (content === undefined) throw wrong();
      return contentBytes(content);
    }
    default: {
      const word = writeWord(type, wordValueOf(type, given));
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

function contentOf(kind: "bytes" | "string", given: unknown): Uint8Array | undefined {
  if (kind === "bytes") return bytesOf(given);
  return typeof given === "string" ? Buffer.from(given, "utf8") : undefined;
}

/** What `writeWord` takes, if it is of the type. */
function wordValueOf({ kind }: WordType, given: unknown): WordValue | undefined {
  switch (kind) {
    case "address":
      return typeof given === "string" ? readPayee(given) : undefined;
    case "bool":
      return flagOf(given);
    case "fixed":
      return bytesOf(given);
    default:
      return numberOf(given);
  }
}

function flagOf(given: unknown): boolean | undefined {
  if (given === true || given === "true" || given === "1") return true;
  return given === false || given === "false" || given === "0" ? false : undefined;
}

function bytesOf(given: unknown): Uint8Array | undefined {
  const isBytes = typeof given === "string" && /^0x([0-9a-f]{2})*$/i.test(given);
  return isBytes ? Buffer.from(given.slice(2), "hex") : undefined;
}

/** Exact or not at all: a number of JSON beyond 2^53 was changed before it came here. */
function numberOf(given: unknown): bigint | undefined {
  if (typeof given === "number") return Number.isSafeInteger(given) ? BigInt(given) : undefined;
  if (typeof given !== "string") return undefined;
  return /^(-?[0-9]{1,78}|0x[0-9a-f]{1,64})$/i.test(given) ? BigInt(given) : undefined;
}
