/**
 * The rules that a transaction must meet, stated once for everybody who asks: JSON-RPC and the
 * consensus RPC through the pool, the pool itself, the dry check, who builds a block and who
 * checks one. Pure. Texts are geth's to the letter: clients recognise refusals by them.
 * Sources: EIP-155, EIP-1559, EIP-2028, EIP-2681, EIP-2930, EIP-3607, EIP-3860; decisions D1, D7,
 * D21; geth `core/txpool/validation.go`, `core/state_transition.go`.
 */
import type { Address } from "./address.js";
import type { ErrorDetails } from "./errors.js";
import {
  type AccessListEntry,
  effectiveGasPriceAtoken,
  type SignedTransaction,
} from "./transaction.js";
import { TRANSFER_GAS } from "./networks.js";
import type { Atoken } from "./units.js";

/** Largest raw transaction: geth's limit, four slots of 32 KiB. */
export const MAX_TRANSACTION_BYTES = 128 * 1024;

/** Extra gas of a creation. */
const CREATE_GAS = 32_000n;
/** EIP-3860: creation code of a transaction, at most. */
export const MAX_INITCODE_BYTES = 49_152;

/** Of calldata, its cheapest byte; each byte of an access list costs more. */
export const ZERO_BYTE_GAS = 4;
const NONZERO_BYTE_GAS = 16;
const INITCODE_WORD_GAS = 2;
const ACCESS_ADDRESS_GAS = 2_400n;
const ACCESS_SLOT_GAS = 1_900n;

/** Largest nonce that can be executed (EIP-2681). */
export const MAX_NONCE = 2n ** 64n - 2n;

/** Limits of gas are uint64 in every encoding. */
export const MAX_GAS = 2n ** 64n - 1n;

/** Which rule a transaction breaks. */
export type TransactionFaultCode =
  | "TRANSACTION_TOO_LARGE"
  | "INVALID_CHAIN_ID"
  | "NONCE_TOO_HIGH"
  | "INITCODE_TOO_LARGE"
  | "GAS_LIMIT_EXCEEDED"
  | "TIP_ABOVE_FEE_CAP"
  | "INTRINSIC_GAS_TOO_LOW"
  | "GAS_PRICE_BELOW_MINIMUM"
  | "SENDER_NOT_EOA"
  | "NONCE_TOO_LOW"
  | "INSUFFICIENT_FUNDS"
  | "REPLACEMENT_UNDERPRICED";

/** A broken rule. Numbers in `details` are decimal strings, so that edges can pass them on. */
export interface TransactionFault {
  readonly code: TransactionFaultCode;
  readonly message: string;
  readonly details?: ErrorDetails;
}

/** What the chain allows a single transaction. */
export interface TransactionLimits {
  /** EIP-155 chain id. */
  readonly chainId: bigint;
  /** Most gas that a transaction may name (D21). */
  readonly maxTransactionGas: bigint;
}

/** What the committed state, or the state of a block that is being built, says of the sender. */
export interface SenderAccount {
  /** Next nonce. */
  readonly nonce: bigint;
  readonly balanceAtoken: Atoken;
  readonly hasCode: boolean;
}

/**
 * TRANSACTION_TOO_LARGE, asked before anything is decoded.
 * @param limitBytes at most MAX_TRANSACTION_BYTES
 */
export function sizeFault(
  raw: Uint8Array,
  limitBytes = MAX_TRANSACTION_BYTES,
): TransactionFault | undefined {
  if (raw.length <= limitBytes) return undefined;
  return {
    code: "TRANSACTION_TOO_LARGE",
    message: `oversized data: transaction size ${raw.length}, limit ${limitBytes}`,
    details: { sizeBytes: raw.length, limitBytes },
  };
}

/**
 * Everything that depends on neither sender nor state, for ever true or false of the same bytes.
 * The type was checked by the decoder; sums and prices are below 2^256, because it reads no
 * longer integers.
 * @param intrinsic gas of the transaction's own bytes, where the caller has it already
 * @returns INVALID_CHAIN_ID, NONCE_TOO_HIGH, INITCODE_TOO_LARGE, GAS_LIMIT_EXCEEDED,
 * TIP_ABOVE_FEE_CAP, INTRINSIC_GAS_TOO_LOW or undefined
 */
export function staticFault(
  tx: SignedTransaction,
  { chainId, maxTransactionGas }: TransactionLimits,
  intrinsic = intrinsicGas(tx),
): TransactionFault | undefined {
  if (tx.chainId !== chainId) return wrongChainId(tx.chainId, chainId);
  if (tx.nonce > MAX_NONCE) return { code: "NONCE_TOO_HIGH", message: "nonce has max value" };
  if (tx.to === undefined && tx.data.length > MAX_INITCODE_BYTES) {
    return initcodeTooLarge(tx.data.length);
  }
  if (tx.gasLimit > maxTransactionGas) return gasLimitExceeded(tx.gasLimit, maxTransactionGas);
  if (tx.maxPriorityFeePerGasAtoken > tx.maxFeePerGasAtoken) return tipAboveFeeCap(tx);
  if (tx.gasLimit < intrinsic) return intrinsicGasTooLow(tx.gasLimit, intrinsic);
  return undefined;
}

/** GAS_PRICE_BELOW_MINIMUM under a node's own floor (D1): what is in a block need not meet it. */
export function priceFault(
  tx: SignedTransaction,
  minGasPriceAtoken: Atoken,
): TransactionFault | undefined {
  const priceAtoken = effectiveGasPriceAtoken(tx);
  if (priceAtoken >= minGasPriceAtoken) return undefined;
  return {
    code: "GAS_PRICE_BELOW_MINIMUM",
    message:
      `transaction gas price below minimum: gas tip cap ${priceAtoken}, ` +
      `minimum needed ${minGasPriceAtoken}`,
    details: {
      priceAtoken: priceAtoken.toString(),
      minimumAtoken: minGasPriceAtoken.toString(),
    },
  };
}

/**
 * Whether the sender may ever send this, whatever else it has sent.
 * @returns SENDER_NOT_EOA, NONCE_TOO_LOW or undefined
 */
export function senderFault(
  tx: Pick<SignedTransaction, "nonce">,
  from: Address,
  account: Pick<SenderAccount, "nonce" | "hasCode">,
): TransactionFault | undefined {
  if (account.hasCode) return senderNotEoa(from);
  return tx.nonce < account.nonce ? nonceTooLow(account.nonce, tx.nonce) : undefined;
}

/**
 * Whether the transaction may be executed next, on exactly this account.
 * @returns NONCE_TOO_HIGH, SENDER_NOT_EOA, NONCE_TOO_LOW, INSUFFICIENT_FUNDS or undefined
 */
export function executionFault(
  tx: SignedTransaction,
  from: Address,
  account: SenderAccount,
): TransactionFault | undefined {
  const unfit = senderFault(tx, from, account);
  if (unfit !== undefined) return unfit;
  if (tx.nonce > account.nonce) return nonceTooHigh(account.nonce, tx.nonce);
  return fundsFault({
    balanceAtoken: account.balanceAtoken,
    costAtoken: mostCostAtoken(tx),
    earlierCostAtoken: 0n,
  });
}

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

/**
 * Most that a transaction may take from its sender, atoken: gas limit x fee cap + value. What it
 * pays in the end is gas used x effective price + value; the cap is asked for as Ethereum does
 * (EIP-1559: "the signer must be able to afford the transaction").
 */
export function mostCostAtoken(
  tx: Pick<SignedTransaction, "gasLimit" | "maxFeePerGasAtoken" | "valueAtoken">,
): Atoken {
  return tx.gasLimit * tx.maxFeePerGasAtoken + tx.valueAtoken;
}

/** What a sender has and what its transactions may cost, in atoken. */
export interface Funding {
  readonly balanceAtoken: Atoken;
  /** Most that the transaction may cost. */
  readonly costAtoken: Atoken;
  /** Most that those before it may cost together. */
  readonly earlierCostAtoken: Atoken;
  /** Most that the one may cost which it replaces; it is part of `earlierCostAtoken`. */
  readonly replacedCostAtoken?: Atoken | undefined;
}

/**
 * INSUFFICIENT_FUNDS when the balance does not cover the transaction and those before it: one may
 * follow others only if all of them together can be paid.
 */
export function fundsFault(funding: Funding): TransactionFault | undefined {
  const { balanceAtoken, costAtoken, earlierCostAtoken, replacedCostAtoken } = funding;
  const replacedAtoken = replacedCostAtoken === undefined ? 0n : replacedCostAtoken;
  const neededAtoken = earlierCostAtoken + costAtoken - replacedAtoken;
  if (neededAtoken <= balanceAtoken) return undefined;
  const start = `insufficient funds for gas * price + value: balance ${balanceAtoken},`;
  const addedAtoken = costAtoken - replacedAtoken;
  const verb = replacedCostAtoken === undefined ? "tx cost" : "tx bumped";
  const rest =
    costAtoken > balanceAtoken
      ? `tx cost ${costAtoken}, overshot ${costAtoken - balanceAtoken}`
      : `queued cost ${earlierCostAtoken}, ${verb} ${addedAtoken}, ` +
        `overshot ${neededAtoken - balanceAtoken}`;
  return {
    code: "INSUFFICIENT_FUNDS",
    message: `${start} ${rest}`,
    details: {
      balanceAtoken: balanceAtoken.toString(),
      costAtoken: costAtoken.toString(),
      queuedCostAtoken: earlierCostAtoken.toString(),
    },
  };
}

/**
 * REPLACEMENT_UNDERPRICED unless the newcomer outbids the transaction that holds its nonce.
 * Prices are effective prices, atoken per gas.
 */
export function replacementFault(
  priceAtoken: Atoken,
  heldPriceAtoken: Atoken,
): TransactionFault | undefined {
  if (outbids(priceAtoken, heldPriceAtoken)) return undefined;
  return {
    code: "REPLACEMENT_UNDERPRICED",
    message: "replacement transaction underpriced",
    details: { neededPriceAtoken: replacementPriceAtoken(heldPriceAtoken).toString() },
  };
}

/**
 * Whether an effective price takes the place of another: 10 % more, at least 1. The tenth is rounded down,
 * as in go-ethereum: wallets reckon it so, and would be refused for a part of an atoken.
 */
export function outbids(priceAtoken: Atoken, heldPriceAtoken: Atoken): boolean {
  return priceAtoken > heldPriceAtoken && priceAtoken >= (heldPriceAtoken * 110n) / 100n;
}

/**
 * Effective price to offer in the place of a transaction: 10 % more, rounded up, at least 1 more, which pools
 * of any kind take.
 */
export function replacementPriceAtoken(priceAtoken: Atoken): Atoken {
  const neededAtoken = (priceAtoken * 110n + 99n) / 100n;
  return neededAtoken > priceAtoken ? neededAtoken : priceAtoken + 1n;
}

function wrongChainId(have: bigint, want: bigint): TransactionFault {
  return {
    code: "INVALID_CHAIN_ID",
    message: `invalid sender: invalid chain id for signer: have ${have} want ${want}`,
    details: { have: have.toString(), want: want.toString() },
  };
}

function initcodeTooLarge(sizeBytes: number): TransactionFault {
  return {
    code: "INITCODE_TOO_LARGE",
    message: `max initcode size exceeded: code size ${sizeBytes}, limit ${MAX_INITCODE_BYTES}`,
    details: { sizeBytes, limitBytes: MAX_INITCODE_BYTES },
  };
}

function gasLimitExceeded(gasLimit: bigint, maximumGas: bigint): TransactionFault {
  return {
    code: "GAS_LIMIT_EXCEEDED",
    message: "exceeds block gas limit",
    details: { gasLimit: gasLimit.toString(), maximumGas: maximumGas.toString() },
  };
}

function tipAboveFeeCap(tx: SignedTransaction): TransactionFault {
  return {
    code: "TIP_ABOVE_FEE_CAP",
    message: "max priority fee per gas higher than max fee per gas",
    details: {
      maxPriorityFeePerGasAtoken: tx.maxPriorityFeePerGasAtoken.toString(),
      maxFeePerGasAtoken: tx.maxFeePerGasAtoken.toString(),
    },
  };
}

function intrinsicGasTooLow(gasLimit: bigint, minimumGas: bigint): TransactionFault {
  return {
    code: "INTRINSIC_GAS_TOO_LOW",
    message: `intrinsic gas too low: gas ${gasLimit}, minimum needed ${minimumGas}`,
    details: { gasLimit: gasLimit.toString(), minimumGas: minimumGas.toString() },
  };
}

function senderNotEoa(sender: Address): TransactionFault {
  return {
    code: "SENDER_NOT_EOA",
    message: `sender not an eoa: address ${sender}`,
    details: { sender },
  };
}

function nonceTooLow(nextNonce: bigint, txNonce: bigint): TransactionFault {
  return {
    code: "NONCE_TOO_LOW",
    message: `nonce too low: next nonce ${nextNonce}, tx nonce ${txNonce}`,
    details: { nextNonce: nextNonce.toString(), txNonce: txNonce.toString() },
  };
}

function nonceTooHigh(nextNonce: bigint, txNonce: bigint): TransactionFault {
  return {
    code: "NONCE_TOO_HIGH",
    message: `nonce too high: next nonce ${nextNonce}, tx nonce ${txNonce}`,
    details: { nextNonce: nextNonce.toString(), txNonce: txNonce.toString() },
  };
}
