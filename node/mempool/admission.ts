/**
 * Rules that a transaction must meet by itself, before its place among the sender's others is
 * looked for. Pure: no I/O, no pool. Sources: EIP-2028 and the Yellow Paper (calldata), EIP-2930,
 * EIP-3860, EIP-3607, EIP-2681; decisions D1, D7, D21.
 */
import type { Address } from "../../chain/address.js";
import { intrinsicGas, MAX_INITCODE_BYTES } from "../../chain/gas.js";
import { effectiveGasPriceAtoken, type SignedTransaction } from "../../chain/transaction.js";
import {
  gasLimitExceeded,
  gasPriceBelowMinimum,
  initcodeTooLarge,
  intrinsicGasTooLow,
  invalidChainId,
  nonceTooHigh,
  type PoolError,
  senderNotEoa,
  transactionTooLarge,
} from "./pool-error.js";

/** Synchronous reads of the committed state at the head; 0 and false for unknown accounts. */
export interface StateAtHead {
  /** Next nonce of the account. */
  nonce(address: Address): bigint;
  balanceAtoken(address: Address): bigint;
  hasCode(address: Address): boolean;
}

/** What the chain and this node's settings ask of every transaction. */
export interface PoolRules {
  /** EIP-155 chain id. */
  readonly chainId: bigint;
  /** Floor of the effective price, atoken per gas (D1). */
  readonly minGasPriceAtoken: bigint;
  /** Gas limit of a block (D21). */
  readonly maxGas: bigint;
  /** Gas that transactions entering code may take in a block (D21); at most `maxGas`. */
  readonly maxCallGas: bigint;
  /** True for addresses that run native code when called. */
  isPrecompile(address: Address): boolean;
}

/** Largest raw transaction: geth's limit, four slots of 32 KiB. */
export const MAX_TRANSACTION_BYTES = 128 * 1024;

/** Largest nonce that can be executed (EIP-2681). */
const MAX_NONCE = 2n ** 64n - 2n;

/** TRANSACTION_TOO_LARGE, checked before anything is decoded. */
export function checkSize(raw: Uint8Array): PoolError | undefined {
  return raw.length > MAX_TRANSACTION_BYTES
    ? transactionTooLarge(raw.length, MAX_TRANSACTION_BYTES)
    : undefined;
}

/**
 * Everything that depends on neither sender nor state; it comes before the recovery, which costs
 * a hundred times more. The type was checked by the decoder.
 * @returns INVALID_CHAIN_ID, NONCE_TOO_HIGH, INITCODE_TOO_LARGE, GAS_LIMIT_EXCEEDED,
 * INTRINSIC_GAS_TOO_LOW, GAS_PRICE_BELOW_MINIMUM or undefined
 */
export function checkTransaction(tx: SignedTransaction, rules: PoolRules): PoolError | undefined {
  if (tx.chainId !== rules.chainId) return invalidChainId(tx.chainId, rules.chainId);
  if (tx.nonce > MAX_NONCE) return nonceTooHigh();
  if (tx.to === undefined && tx.data.length > MAX_INITCODE_BYTES) {
    return initcodeTooLarge(tx.data.length, MAX_INITCODE_BYTES);
  }
  if (tx.gasLimit > rules.maxGas) return gasLimitExceeded(tx.gasLimit, rules.maxGas);
  const minimumGas = intrinsicGas(tx);
  if (tx.gasLimit < minimumGas) return intrinsicGasTooLow(tx.gasLimit, minimumGas);
  const priceAtoken = effectiveGasPriceAtoken(tx);
  if (priceAtoken < rules.minGasPriceAtoken) {
    return gasPriceBelowMinimum(priceAtoken, rules.minGasPriceAtoken);
  }
  return undefined;
}

/** SENDER_NOT_EOA, or undefined. */
export function checkSender(from: Address, state: StateAtHead): PoolError | undefined {
  return state.hasCode(from) ? senderNotEoa(from) : undefined;
}

/**
 * GAS_LIMIT_EXCEEDED when the transaction may enter code and wants more gas than a block has for
 * such ones. The state is read only where the answer can matter.
 */
export function checkCallGas(
  tx: SignedTransaction,
  rules: PoolRules,
  state: StateAtHead,
): PoolError | undefined {
  if (tx.gasLimit <= rules.maxCallGas) return undefined;
  const { to } = tx;
  const entersCode = to === undefined || rules.isPrecompile(to) || state.hasCode(to);
  return entersCode ? gasLimitExceeded(tx.gasLimit, rules.maxCallGas) : undefined;
}
