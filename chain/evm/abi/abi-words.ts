/**
 * One word of Solidity's contract ABI: a value of an elementary type, a length or an offset.
 * Source: Solidity's contract ABI specification.
 */
import { type Address, addressToBytes, bytesToAddress } from "../../address.js";
import { bigintToWord, bytesToBigint } from "../../hex.js";
import type { WordType } from "./abi-types.js";

/** Bytes of a word. */
export const WORD_BYTES = 32;

/** A value that is one word. */
export type WordValue = Address | bigint | boolean | Uint8Array;

/** Zeros before an address in its word. */
const ADDRESS_PADDING_BYTES = 12;

/** A word as a value of a type; undefined where it is none, by as little as a dirty bit. */
export function readWord(type: WordType, word: Uint8Array): WordValue | undefined {
  switch (type.kind) {
    case "address":
      if (!isZero(word.subarray(0, ADDRESS_PADDING_BYTES))) return undefined;
      return bytesToAddress(word.subarray(ADDRESS_PADDING_BYTES));
    case "bool": {
      const number = bytesToBigint(word);
      return number > 1n ? undefined : number === 1n;
    }
    case "fixed":
      return isZero(word.subarray(type.bytes)) ? word.slice(0, type.bytes) : undefined;
    default: {
      const unsigned = bytesToBigint(word);
      const number = type.kind === "int" ? BigInt.asIntN(256, unsigned) : unsigned;
      return isInRange(type, number) ? number : undefined;
    }
  }
}

/** A value of a type as its word; undefined where it is none. */
export function writeWord(type: WordType, value: unknown): Uint8Array | undefined {
  switch (type.kind) {
    case "address": {
      if (typeof value !== "string") return undefined;
      const bytes = addressToBytes(value as Address);
      return wordWith(bytes, WORD_BYTES - bytes.length);
    }
    case "bool":
      return typeof value === "boolean" ? bigintToWord(value ? 1n : 0n) : undefined;
    case "fixed":
      if (!(value instanceof Uint8Array) || value.length !== type.bytes) return undefined;
      return wordWith(value, 0);
    default:
      if (typeof value !== "bigint" || !isInRange(type, value)) return undefined;
      return bigintToWord(BigInt.asUintN(256, value));
  }
}

/** A length or an offset; undefined where it is more than `most`, or where bytes are missing. */
export function readSize(word: Uint8Array, most: number): number | undefined {
  if (word.length !== WORD_BYTES) return undefined;
  const value = bytesToBigint(word);
  return value <= BigInt(most) ? Number(value) : undefined;
}

/** The word of a length or an offset. */
export function writeSize(size: number): Uint8Array {
  return bigintToWord(BigInt(size));
}

function isInRange({ kind, bits }: WordType & { kind: "uint" | "int" }, value: bigint): boolean {
  const kept = kind === "uint" ? BigInt.asUintN(bits, value) : BigInt.asIntN(bits, value);
  return kept === value;
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

function wordWith(bytes: Uint8Array, start: number): Uint8Array {
  const word = new Uint8Array(WORD_BYTES);
  word.set(bytes, start);
  return word;
}
