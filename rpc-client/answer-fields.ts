/** Readers of single fields of a node's answer: each gives a typed value or BAD_ANSWER. */
import { type Address, parseAddress } from "../chain/address.js";
import {
  type Hash32,
  type Hex,
  parseHash32,
  parseHex,
  parseQuantity,
  parseSafeQuantity,
} from "../chain/hex.js";
import { badAnswer } from "./errors.js";

/** An object of an answer whose fields are not yet known. */
export type AnswerObject = Readonly<Record<string, unknown>>;

/** The value as an object. */
export function readObject(value: unknown, name: string): AnswerObject {
  if (!isAnswerObject(value)) throw badAnswer(`${name} is not an object`);
  return value;
}

/** The value as a list. */
export function readList(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw badAnswer(`${name} is not a list`);
  return value;
}

/** The value as text. */
export function readString(value: unknown, name: string): string {
  if (typeof value !== "string") throw badAnswer(`${name} is not a string`);
  return value;
}

/** The value as a boolean. */
export function readBoolean(value: unknown, name: string): boolean {
  if (typeof value !== "boolean") throw badAnswer(`${name} is not a boolean`);
  return value;
}

/** The value as a JSON number that is a safe integer >= 0. */
export function readCount(value: unknown, name: string): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw badAnswer(`${name} is not a whole number`);
  }
  return value;
}

/** The value as an EVM quantity. */
export function readQuantity(value: unknown, name: string): bigint {
  return read(value, name, parseQuantity);
}

/** The value as an EVM quantity below 2^53: heights and indexes. */
export function readSafeQuantity(value: unknown, name: string): number {
  return read(value, name, parseSafeQuantity);
}

/** The value as a 32-byte hash. */
export function readHash(value: unknown, name: string): Hash32 {
  return read(value, name, parseHash32);
}

/** The value as an address. */
export function readAddress(value: unknown, name: string): Address {
  return read(value, name, parseAddress);
}

/** The value as hex bytes. */
export function readHex(value: unknown, name: string): Hex {
  return read(value, name, parseHex);
}

/** The value as a signed decimal string without leading zeros. */
export function readDecimal(value: unknown, name: string): bigint {
  if (typeof value !== "string" || !/^(0|-?[1-9][0-9]{0,80})$/.test(value)) {
    throw badAnswer(`${name} is not a decimal string`);
  }
  return BigInt(value);
}

/** One of the words of a vocabulary. */
export function readWord<Word extends string>(
  words: readonly Word[],
  value: unknown,
  name: string,
): Word {
  const found = words.find((word) => word === value);
  if (found === undefined) throw badAnswer(`${name} is not one of the vocabulary`);
  return found;
}

/** Undefined for null or an absent field, else what the reader makes of it. */
export function readOptional<T>(
  value: unknown,
  name: string,
  reader: (value: unknown, name: string) => T,
): T | undefined {
  return value === null || value === undefined ? undefined : reader(value, name);
}

function read<T>(value: unknown, name: string, parse: (value: unknown) => T): T {
  try {
    return parse(value);
  } catch (cause) {
    throw badAnswer(`${name} is malformed`, cause);
  }
}

function isAnswerObject(value: unknown): value is AnswerObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
