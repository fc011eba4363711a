/** 256-bit words of the EVM as bigints from 0 up to 2^256 - 1, and their other forms. */
import type { Address } from "../../../chain/address.js";
import { bigintAt, type Hash32 } from "../../../chain/hex.js";

const ADDRESS_MASK = (1n << 160n) - 1n;
const WORD_MASK = (1n << 256n) - 1n;
const SIGN_BIT = 1n << 255n;
const UINT64_MASK = 0xffff_ffff_ffff_ffffn;

/** The lowest 256 bits. */
export function wrap(value: bigint): bigint {
  return value & WORD_MASK;
}

/** Two's complement to a number with sign. */
export function toSigned(word: bigint): bigint {
  return word >= SIGN_BIT ? word - (WORD_MASK + 1n) : word;
}

/** The address in the lowest 20 bytes of a word. */
export function wordToAddress(word: bigint): Address {
  return `0x${(word & ADDRESS_MASK).toString(16).padStart(40, "0")}` as Address;
}

/** A storage key in the state's form. */
export function wordToSlot(word: bigint): Hash32 {
  return `0x${word.toString(16).padStart(64, "0")}` as Hash32;
}

/** An offset or size as a number; what no gas could pay for is Infinity. */
export function wordToSize(word: bigint): number {
  return word > UINT64_MASK ? Infinity : Number(word);
}

/** The word in so many bytes of call data or code; bytes behind the end are zero. */
export function wordFrom(bytes: Uint8Array, start: number, size: number): bigint {
  const end = start + size;
  if (end <= bytes.length) return bigintAt(bytes, start, end);
  if (start >= bytes.length) return 0n;
  return bigintAt(bytes, start, bytes.length) << BigInt(8 * (end - bytes.length));
}
