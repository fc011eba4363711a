/** Precompiles 0x01 to 0x04: ecrecover, SHA-256, RIPEMD-160, identity. */
import { SECP256K1_ORDER, secp256k1 } from "../../../chain/crypto.js";
import { keccak256, ripemd160, sha256 } from "../../../chain/hashes.js";
import { bytesToBigint } from "../../../chain/hex.js";
import { padded, type Precompile } from "./precompile.js";

const NO_BYTES = new Uint8Array(0);
const WORD_BYTES = 32;
const ADDRESS_BYTES = 20;
const ECRECOVER_INPUT_BYTES = 4 * WORD_BYTES;
/** v of the original signatures: 27 or 28. */
const FIRST_V = 27n;

/** So much for a call, and for each word of its input. */
function byWords(base: number, perWord: number): (input: Uint8Array) => number {
  return (input) => base + perWord * Math.ceil(input.length / WORD_BYTES);
}

/** Address in a word. */
function addressWord(bytes: Uint8Array): Uint8Array {
  const word = new Uint8Array(WORD_BYTES);
  word.set(bytes, WORD_BYTES - ADDRESS_BYTES);
  return word;
}

function isScalar(bytes: Uint8Array): boolean {
  const value = bytesToBigint(bytes);
  return value > 0n && value < SECP256K1_ORDER;
}

/** 0x01: who signed a digest; no bytes for what nobody signed. */
export const ecrecover: Precompile = {
  gas: () => 3_000,
  computeNs: () => 80_000,
  run(input) {
    const bytes = padded(input, ECRECOVER_INPUT_BYTES);
    const recoveryId = bytesToBigint(bytes.subarray(WORD_BYTES, 2 * WORD_BYTES)) - FIRST_V;
    const compact = bytes.subarray(2 * WORD_BYTES);
    if (recoveryId !== 0n && recoveryId !== 1n) return NO_BYTES;
    if (!isScalar(compact.subarray(0, WORD_BYTES))) return NO_BYTES;
    if (!isScalar(compact.subarray(WORD_BYTES))) return NO_BYTES;
    const digest = bytes.subarray(0, WORD_BYTES);
    const key = secp256k1.recover(digest, compact, Number(recoveryId));
    return key === undefined ? NO_BYTES : addressWord(keccak256(key).subarray(12));
  },
};

/** 0x02. */
export const sha256Contract: Precompile = {
  gas: byWords(60, 12),
  computeNs: byWords(4_000, 80),
  run: (input) => sha256(input),
};

/** 0x03: 20 bytes in a word. */
export const ripemd160Contract: Precompile = {
  gas: byWords(600, 120),
  computeNs: byWords(5_000, 300),
  run: (input) => addressWord(ripemd160(input)),
};

/** 0x04. */
export const identity: Precompile = {
  gas: byWords(15, 3),
  computeNs: byWords(500, 5),
  run: (input) => input.slice(),
};
