/**
 * A set of addresses by how they begin, which tells in a few nanoseconds that an address is none of
 * them: a look-up among a million texts waits for memory each time, and a block names thousands of
 * accounts of others for each of ours.
 */
import type { Address } from "./address.js";

/** Hex digits of a beginning, behind `0x`. */
const DIGITS = 6;

/** Bits of a hex digit. */
const DIGIT_BITS = 4;

const MASK = 2 ** (DIGITS * DIGIT_BITS) - 1;

/** Bits of a word of the table. */
const WORD_BITS = 32;

/**
 * The beginning of an address that stands as text in bytes, in either case; of any other text a number
 * that means nothing.
 * @param start offset of `0x`; 8 bytes from there on must be there
 */
export function addressPrefix(bytes: Uint8Array, start: number): number {
  let prefix = 0;
  for (let at = start + 2; at < start + 2 + DIGITS; at += 1) {
    const byte = bytes[at] ?? 0;
    // Digits are 0x30 to 0x39, letters 0x41 to 0x46 or 0x61 to 0x66.
    prefix = (prefix << DIGIT_BITS) | ((byte & 0x0f) + (byte >>> 6) * 9);
  }
  return prefix & MASK;
}

/** The beginning of an address that stands as 20 bytes from `start` on. */
export function addressPrefixOfBytes(bytes: Uint8Array, start: number): number {
  return ((bytes[start] ?? 0) << 16) | ((bytes[start + 1] ?? 0) << 8) | (bytes[start + 2] ?? 0);
}

/** The set: 2 MiB, whatever it holds. Grows only. */
export class AddressPrefixes {
  readonly #table = new Uint32Array((MASK + 1) / WORD_BITS);

  /** Adds an address. */
  add(address: Address): void {
    const prefix = prefixOf(address);
    const word = this.#table[prefix >>> 5] ?? 0;
    this.#table[prefix >>> 5] = word | (1 << (prefix & (WORD_BITS - 1)));
  }

  /** False only when no address of the set begins as this one. */
  mayHaveAddress(address: Address): boolean {
    return this.mayHave(prefixOf(address));
  }

  /** False only when no address of the set begins like this; see `addressPrefix`. */
  mayHave(prefix: number): boolean {
    return (((this.#table[prefix >>> 5] ?? 0) >>> (prefix & (WORD_BITS - 1))) & 1) !== 0;
  }
}

function prefixOf(address: Address): number {
  return Number.parseInt(address.slice(2, 2 + DIGITS), 16);
}
