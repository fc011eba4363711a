/** Precompiles 0x06 to 0x08 (EIP-196, EIP-197, gas of EIP-1108), in WebAssembly. */
import { initRustBN } from "rustbn-wasm";
import { hexToBytes } from "../../../chain/hex.js";
import { padded, type Precompile } from "./precompile.js";

/**
 * The curve's arithmetic, four times as fast as in script. Begun once in a process, here: the library
 * keeps its instance and views of its memory in its module, and a second beginning after a first call
 * leaves the views of one instance beside the other, which ends in "unreachable".
 */
export const bn254Curve = await initRustBN();

const POINT_BYTES = 64;
const OPERATION_INPUT_BYTES = 2 * POINT_BYTES;
/** A point of each group. */
const PAIR_BYTES = 192;

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

/** What the library gives for a point that does not exist is no bytes. */
function answer(hex: string, length: number): Uint8Array | undefined {
  const bytes = hexToBytes(`0x${hex.startsWith("0x") ? hex.slice(2) : hex}`);
  return bytes.length === length ? bytes : undefined;
}

const NOT_ON_CURVE = "point is not on curve";

function pairsIn(input: Uint8Array): number {
  return Math.floor(input.length / PAIR_BYTES);
}

/** 0x06: sum of two points. */
export const bn254Add: Precompile = {
  gas: () => 150,
  computeNs: () => 30_000,
  run: (input) =>
    answer(bn254Curve.ec_add(hexOf(padded(input, OPERATION_INPUT_BYTES))), POINT_BYTES),
  failure: () => NOT_ON_CURVE,
};

/** 0x07: a point times a number. */
export const bn254Mul: Precompile = {
  gas: () => 6_000,
  computeNs: () => 750_000,
  run: (input) =>
    answer(bn254Curve.ec_mul(hexOf(padded(input, OPERATION_INPUT_BYTES))), POINT_BYTES),
  failure: () => NOT_ON_CURVE,
};

/** 0x08: 1 where the product of the pairings is one. */
export const bn254Pairing: Precompile = {
  gas: (input) => 45_000 + 34_000 * pairsIn(input),
  computeNs: (input, { pairingNs }) => 1_000_000 + pairingNs * pairsIn(input),
  run: (input) =>
    input.length % PAIR_BYTES === 0 ? answer(bn254Curve.ec_pairing(hexOf(input)), 32) : undefined,
  failure: (input) =>
    input.length % PAIR_BYTES === 0 ? NOT_ON_CURVE : "bad elliptic curve pairing size",
};
