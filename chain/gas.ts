/** Intrinsic gas: what a transaction costs before any code runs (EIP-2028, 2930, 3860). */
import type { AccessListEntry } from "./transaction.js";

/** Gas of a plain transfer. */
export const TRANSFER_GAS = 21_000n;
/** Extra gas of a creation. */
export const CREATE_GAS = 32_000n;
/** EIP-3860: creation code of a transaction, at most. */
export const MAX_INITCODE_BYTES = 49_152;

const ZERO_BYTE_GAS = 4;
const NONZERO_BYTE_GAS = 16;
const INITCODE_WORD_GAS = 2;
const ACCESS_ADDRESS_GAS = 2_400n;
const ACCESS_SLOT_GAS = 1_900n;

/** The parts of a transaction that intrinsic gas depends on. */
export interface GasRelevant {
  readonly to: string | undefined;
  readonly data: Uint8Array;
  readonly accessList: readonly AccessListEntry[];
}

/** Gas that the transaction needs before its first opcode. */
export function intrinsicGas(tx: GasRelevant): bigint {
  let dataGas = 0;
  for (const byte of tx.data) dataGas += byte === 0 ? ZERO_BYTE_GAS : NONZERO_BYTE_GAS;
  let gas = TRANSFER_GAS + BigInt(dataGas);
  if (tx.to === undefined) {
    gas += CREATE_GAS + BigInt(INITCODE_WORD_GAS * Math.ceil(tx.data.length / 32));
  }
  for (const { storageKeys } of tx.accessList) {
    gas += ACCESS_ADDRESS_GAS + ACCESS_SLOT_GAS * BigInt(storageKeys.length);
  }
  return gas;
}
