/**
 * Refusals of the pool, with geth's texts to the letter: clients recognise them by the text.
 * Numbers in `details` are decimal strings, so that an edge can serialise them as they are.
 */
import { AppError, ChainError, errorMessage } from "../../chain/errors.js";
import type { TransactionFault } from "../../chain/transaction-rules.js";
import type { Atoken } from "../../chain/units.js";
import type { PoolErrorCode } from "./pool-port.js";

/**
 * Why a transaction was not admitted. NODE_HALTED, POOL_FULL and
 * UNDERPRICED are retriable.
 */
export class PoolError extends AppError<PoolErrorCode> {}

/** A broken rule of the chain as a refusal. */
export function refusalOf({ code, message, details = {} }: TransactionFault): PoolError {
  return new PoolError(code, message, { details });
}

/** ALREADY_KNOWN: the same bytes are in the pool and will be tried; nothing is lost. */
export function alreadyKnown(): PoolError {
  return new PoolError("ALREADY_KNOWN", "already known");
}

/**
 * UNDERPRICED: the pool is full, and what it holds pays at least as much (D23). The same bytes
 * may be sent again later; more than the needed price gets in at once.
 */
export function underpriced(neededPriceAtoken: Atoken): PoolError {
  return new PoolError("UNDERPRICED", "transaction underpriced", {
    retriable: true,
    details: { neededPriceAtoken: neededPriceAtoken.toString() },
  });
}

/** POOL_FULL: no room, whatever the transaction pays: too much waits, or it cannot be mined yet. */
export function poolFull(): PoolError {
  return new PoolError("POOL_FULL", "txpool is full", { retriable: true });
}

/** ACCOUNT_LIMIT: the sender already has as many transactions in the pool as it may (D23). */
export function accountLimit(pooledCount: number): PoolError {
  return new PoolError("ACCOUNT_LIMIT", `account limit exceeded: pooled ${pooledCount} txs`, {
    details: { pooledCount },
  });
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
