/** The modexp precompile (0x05, EIP-198, gas of EIP-2565), whose time follows its gas. */
import { bigintToBytes, bytesToBigint } from "../../../chain/hex.js";
import type { Precompile } from "./precompile.js";

const WORD_BYTES = 32;
const MIN_GAS = 200n;
const GAS_DIVISOR = 3n;
/** The formula of the gas follows the work; so much time a unit of it, at worst. */
const BASE_NS = 5_000;
const GAS_NS = 150;
/** Below this the square of a remainder is an exact number. */
const MAX_NUMBER_MODULUS = 94_906_265n;
/** Bits of the exponent that are taken at a time. */
const WINDOW_BITS = 4;

/** base ^ exponent % modulus, all of the lengths that the first three words name. */
export const modexp: Precompile = {
  gas(input) {
    const { baseLength, exponentLength, modulusLength } = lengthsOf(input);
    const longest = baseLength > modulusLength ? baseLength : modulusLength;
    const words = (longest + 7n) / 8n;
    const head = exponentHead(input, baseLength, exponentLength);
    const iterations = exponentBits(head, exponentLength);
    const cost = (words * words * iterations) / GAS_DIVISOR;
    return Number(cost > MIN_GAS ? cost : MIN_GAS);
  },
  computeNs: (input) => BASE_NS + GAS_NS * modexp.gas(input),
  run(input) {
    const { baseLength, exponentLength, modulusLength } = lengthsOf(input);
    if (modulusLength === 0n) return new Uint8Array(0);
    // The gas that was paid bounds all three sizes.
    const start = 3 * WORD_BYTES;
    const sizes = [Number(baseLength), Number(exponentLength), Number(modulusLength)] as const;
    const base = bytesToBigint(bytesAt(input, start, sizes[0]));
    const exponent = bytesAt(input, start + sizes[0], sizes[1]);
    const modulus = bytesToBigint(bytesAt(input, start + sizes[0] + sizes[1], sizes[2]));
    const output = new Uint8Array(sizes[2]);
    const result = bigintToBytes(power(base, exponent, modulus));
    output.set(result, output.length - result.length);
    return output;
  },
};

interface Lengths {
  readonly baseLength: bigint;
  readonly exponentLength: bigint;
  readonly modulusLength: bigint;
}

function lengthsOf(input: Uint8Array): Lengths {
  return {
    baseLength: wordAt(input, 0),
    exponentLength: wordAt(input, WORD_BYTES),
    modulusLength: wordAt(input, 2 * WORD_BYTES),
  };
}

/** Bytes of a range; those behind the end are zero. */
function bytesAt(data: Uint8Array, start: number, length: number): Uint8Array {
  const found = data.subarray(start, start + length);
  if (found.length === length) return found;
  const padded = new Uint8Array(length);
  padded.set(found);
  return padded;
}

function wordAt(data: Uint8Array, start: number): bigint {
  return bytesToBigint(bytesAt(data, start, WORD_BYTES));
}

/** First word of the exponent, or all of it where it is shorter. */
function exponentHead(data: Uint8Array, baseLength: bigint, exponentLength: bigint): bigint {
  const start = 3n * BigInt(WORD_BYTES) + baseLength;
  if (start >= BigInt(data.length)) return 0n;
  const length = exponentLength < BigInt(WORD_BYTES) ? Number(exponentLength) : WORD_BYTES;
  return bytesToBigint(bytesAt(data, Number(start), length));
}

/** EIP-2565: bits of the head, plus 8 for each byte behind it; at least 1. */
function exponentBits(head: bigint, exponentLength: bigint): bigint {
  const headBits = head === 0n ? 0n : BigInt(head.toString(2).length - 1);
  const rest = exponentLength - BigInt(WORD_BYTES);
  const bits = headBits + (rest > 0n ? 8n * rest : 0n);
  return bits > 1n ? bits : 1n;
}

function power(base: bigint, exponent: Uint8Array, modulus: bigint): bigint {
  if (modulus <= 1n) return 0n;
  return modulus <= MAX_NUMBER_MODULUS
    ? BigInt(smallPower(Number(base % modulus), exponent, Number(modulus)))
    : largePower(base % modulus, exponent, modulus);
}

function smallPower(base: number, exponent: Uint8Array, modulus: number): number {
  let result = 1;
  for (const byte of exponent) {
    for (let bit = 7; bit >= 0; bit--) {
      result = (result * result) % modulus;
      if (((byte >> bit) & 1) === 1) result = (result * base) % modulus;
    }
  }
  return result;
}

function largePower(base: bigint, exponent: Uint8Array, modulus: bigint): bigint {
  const powers = [1n];
  for (let index = 1; index < 1 << WINDOW_BITS; index++) {
    powers.push(((powers[index - 1] ?? 1n) * base) % modulus);
  }
  let result = 1n;
  const raise = (digit: number) => {
    if (result !== 1n) {
      for (let bit = 0; bit < WINDOW_BITS; bit++) result = (result * result) % modulus;
    }
    if (digit > 0) result = (result * (powers[digit] ?? 1n)) % modulus;
  };
  for (const byte of exponent) {
    raise(byte >> WINDOW_BITS);
    raise(byte & 15);
  }
  return result;
}
