/** A precompiled contract: what it costs, and what it does. Both engines run the same ones. */

import type { ComputeWeights } from "../../../chain/evm/compute-weights.js";

/** Pure; the input is the call's data. */
export interface Precompile {
  /** Gas; a sum beyond all numbers is Infinity. */
  gas(input: Uint8Array): number;
  /** Compute units: nanoseconds of the reference machine (D21). Asked only where the gas was paid. */
  computeNs(input: Uint8Array, weights: ComputeWeights): number;
  /** The output; undefined where it fails, which costs all gas of the call. */
  run(input: Uint8Array): Uint8Array | undefined;
  /** Why it fails with the input, in go-ethereum's words; absent where it never does. */
  failure?(input: Uint8Array): string;
}

/** The first bytes of the input, with zeros behind its end. */
export function padded(input: Uint8Array, length: number): Uint8Array {
  if (input.length >= length) return input.subarray(0, length);
  const bytes = new Uint8Array(length);
  bytes.set(input);
  return bytes;
}
