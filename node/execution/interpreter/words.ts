/** 256-bit words of the EVM as bigints from 0 up to 2^256 - 1, and their other forms. */
import type { Address } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";

const WORD_BYTES = 32;
const ADDRESS_MASK = (1n << 160n) - 1n;
const WORD_MASK = (1n << 256n) - 1n;
const SIGN_BIT = 1n << 255n;
const UINT64_MASK = 0xffff_ffff_ffff_ffffn;
const BYTE_MASK = 0xffn;

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

/** Big-endian, in 32 bytes from the offset. */
export function writeWord(bytes: Uint8Array<ArrayBuffer>, offset: number, word: bigint): void {
  if (word <= BYTE_MASK) {
    bytes.fill(0, offset, offset + WORD_BYTES);
    bytes[offset + WORD_BYTES - 1] = Number(word);
    return;
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, WORD_BYTES);
  view.setBigUint64(0, word >> 192n);
  view.setBigUint64(8, (word >> 128n) & UINT64_MASK);
  view.setBigUint64(16, (word >> 64n) & UINT64_MASK);
  view.setBigUint64(24, word & UINT64_MASK);
}
