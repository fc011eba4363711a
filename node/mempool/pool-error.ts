/**
 * Refusals of the pool, with geth's texts to the letter: clients recognise them by the text.
 * Numbers in `details` are decimal strings, so that an edge can serialise them as they are.
 */
import { AppError, ChainError, errorMessage } from "../../chain/errors.js";
import type { PoolErrorCode } from "./pool-port.js";

/** Why a transaction was not admitted. Only NODE_HALTED and POOL_FULL are retriable. */
export class PoolError extends AppError<PoolErrorCode> {}

/** NONCE_TOO_LOW: the nonce is already used by a mined transaction. */
export function nonceTooLow(nextNonce: bigint, txNonce: bigint): PoolError {
  return new PoolError(
    "NONCE_TOO_LOW",
    `nonce too low: next nonce ${nextNonce}, tx nonce ${txNonce}`,
    { details: { nextNonce: nextNonce.toString(), txNonce: txNonce.toString() } },
  );
}

/** NONCE_TOO_HIGH: 2^64 - 1 can never be executed (EIP-2681). */
export function nonceTooHigh(): PoolError {
  return new PoolError("NONCE_TOO_HIGH", "nonce has max value");
}

/** ALREADY_KNOWN: the same bytes are in the pool and will be tried; nothing is lost. */
export function alreadyKnown(): PoolError {
  return new PoolError("ALREADY_KNOWN", "already known");
}

/** Amounts of an INSUFFICIENT_FUNDS refusal, in atoken. */
export interface Shortfall {
  readonly balanceAtoken: bigint;
  /** gas limit x price + value of the transaction. */
  readonly costAtoken: bigint;
  /** Cost of the sender's executable transactions that are already in the pool. */
  readonly queuedCostAtoken: bigint;
  /** Cost of the transaction that this one would replace. */
  readonly replacedCostAtoken: bigint | undefined;
}

/** Text of an INSUFFICIENT_FUNDS refusal, also the reason shown for a dropped transaction. */
export function shortfallText(shortfall: Shortfall): string {
  const { balanceAtoken, costAtoken, queuedCostAtoken, replacedCostAtoken } = shortfall;
  const start = `insufficient funds for gas * price + value: balance ${balanceAtoken},`;
  if (costAtoken > balanceAtoken) {
    return `${start} tx cost ${costAtoken}, overshot ${costAtoken - balanceAtoken}`;
  }
  const addedAtoken = costAtoken - (replacedCostAtoken ?? 0n);
  const overshotAtoken = queuedCostAtoken + addedAtoken - balanceAtoken;
  const verb = replacedCostAtoken === undefined ? "tx cost" : "tx bumped";
  const costs = `queued cost ${queuedCostAtoken}, ${verb} ${addedAtoken}`;
  return `${start} ${costs}, overshot ${overshotAtoken}`;
}

/** INSUFFICIENT_FUNDS: the balance does not cover this and the sender's earlier transactions. */
export function insufficientFunds(shortfall: Shortfall): PoolError {
  return new PoolError("INSUFFICIENT_FUNDS", shortfallText(shortfall), {
    details: {
      balanceAtoken: shortfall.balanceAtoken.toString(),
      costAtoken: shortfall.costAtoken.toString(),
      queuedCostAtoken: shortfall.queuedCostAtoken.toString(),
    },
  });
}

/** INTRINSIC_GAS_TOO_LOW: the gas limit does not pay for the transaction's own bytes. */
export function intrinsicGasTooLow(gasLimit: bigint, minimumGas: bigint): PoolError {
  return new PoolError(
    "INTRINSIC_GAS_TOO_LOW",
    `intrinsic gas too low: gas ${gasLimit}, minimum needed ${minimumGas}`,
    { details: { gasLimit: gasLimit.toString(), minimumGas: minimumGas.toString() } },
  );
}

/** GAS_LIMIT_EXCEEDED: no block could ever hold the transaction (D21). */
export function gasLimitExceeded(gasLimit: bigint, maximumGas: bigint): PoolError {
  return new PoolError("GAS_LIMIT_EXCEEDED", "exceeds block gas limit", {
    details: { gasLimit: gasLimit.toString(), maximumGas: maximumGas.toString() },
  });
}

/** GAS_PRICE_BELOW_MINIMUM: the effective price is under the node's floor (D1). */
export function gasPriceBelowMinimum(priceAtoken: bigint, minimumAtoken: bigint): PoolError {
  return new PoolError(
    "GAS_PRICE_BELOW_MINIMUM",
    `transaction gas price below minimum: gas tip cap ${priceAtoken}, ` +
      `minimum needed ${minimumAtoken}`,
    { details: { priceAtoken: priceAtoken.toString(), minimumAtoken: minimumAtoken.toString() } },
  );
}

/** REPLACEMENT_UNDERPRICED: another transaction holds the nonce and is not outbid by 10 %. */
export function replacementUnderpriced(neededPriceAtoken: bigint): PoolError {
  return new PoolError("REPLACEMENT_UNDERPRICED", "replacement transaction underpriced", {
    details: { neededPriceAtoken: neededPriceAtoken.toString() },
  });
}

/** POOL_FULL: executable transactions are never evicted, so a full pool refuses (D23). */
export function poolFull(): PoolError {
  return new PoolError("POOL_FULL", "txpool is full", { retriable: true });
}

/** ACCOUNT_LIMIT: the sender already has as many transactions in the pool as it may (D23). */
export function accountLimit(pooledCount: number): PoolError {
  return new PoolError("ACCOUNT_LIMIT", `account limit exceeded: pooled ${pooledCount} txs`, {
    details: { pooledCount },
  });
}

/** INVALID_CHAIN_ID: signed for another chain. */
export function invalidChainId(have: bigint, want: bigint): PoolError {
  return new PoolError(
    "INVALID_CHAIN_ID",
    `invalid sender: invalid chain id for signer: have ${have} want ${want}`,
    { details: { have: have.toString(), want: want.toString() } },
  );
}

/** SENDER_NOT_EOA: contracts cannot send transactions (EIP-3607). */
export function senderNotEoa(sender: string): PoolError {
  return new PoolError("SENDER_NOT_EOA", `sender not an eoa: address ${sender}`, {
    details: { sender },
  });
}

/** TRANSACTION_TOO_LARGE: over the limit on the raw bytes. */
export function transactionTooLarge(sizeBytes: number, limitBytes: number): PoolError {
  return new PoolError(
    "TRANSACTION_TOO_LARGE",
    `oversized data: transaction size ${sizeBytes}, limit ${limitBytes}`,
    { details: { sizeBytes, limitBytes } },
  );
}

/** INITCODE_TOO_LARGE: creation code over the limit of EIP-3860. */
export function initcodeTooLarge(sizeBytes: number, limitBytes: number): PoolError {
  return new PoolError(
    "INITCODE_TOO_LARGE",
    `max initcode size exceeded: code size ${sizeBytes}, limit ${limitBytes}`,
    { details: { sizeBytes, limitBytes } },
  );
}

/** NODE_HALTED: nothing was admitted; the same bytes may be sent again later. */
export function nodeHalted(reason: string, cause?: unknown): PoolError {
  return new PoolError("NODE_HALTED", `node cannot accept transactions: ${reason}`, {
    retriable: true,
    cause,
  });
}

/** A fault found while decoding or recovering, in the words that JSON-RPC clients know. */
export function fromChainError(error: ChainError): PoolError {
  switch (error.code) {
    case "UNSUPPORTED_TRANSACTION_TYPE":
      return new PoolError("TYPE_NOT_SUPPORTED", "transaction type not supported", {
        details: error.details,
        cause: error,
      });
    case "UNPROTECTED_TRANSACTION":
      return new PoolError(
        "UNPROTECTED",
        "only replay-protected (EIP-155) transactions allowed over RPC",
        { cause: error },
      );
    case "INVALID_SIGNATURE":
      return new PoolError("INVALID_SENDER", `invalid sender: ${error.message}`, { cause: error });
    default:
      return new PoolError("INVALID_TRANSACTION", `invalid transaction: ${errorMessage(error)}`, {
        cause: error,
      });
  }
}
