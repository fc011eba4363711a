/** The pool's refusals as the SDK's result codes, which wallets of SDK chains know. */
import { AppError, errorMessage } from "../../../chain/errors.js";
import type { PoolErrorCode } from "../../mempool/pool-port.js";
import { CometFault, refused } from "./errors.js";

/** Codes of the SDK's root codespace (types/errors). */
const SDK_CODE = {
  txDecode: 2,
  invalidSequence: 3,
  unauthorized: 4,
  insufficientFunds: 5,
  outOfGas: 11,
  insufficientFee: 13,
  invalidRequest: 18,
  invalidChainId: 28,
} as const;

const CODES: Readonly<Partial<Record<PoolErrorCode, number>>> = {
  NONCE_TOO_LOW: SDK_CODE.invalidSequence,
  NONCE_TOO_HIGH: SDK_CODE.invalidSequence,
  INSUFFICIENT_FUNDS: SDK_CODE.insufficientFunds,
  INTRINSIC_GAS_TOO_LOW: SDK_CODE.outOfGas,
  GAS_LIMIT_EXCEEDED: SDK_CODE.outOfGas,
  GAS_PRICE_BELOW_MINIMUM: SDK_CODE.insufficientFee,
  REPLACEMENT_UNDERPRICED: SDK_CODE.insufficientFee,
  INVALID_CHAIN_ID: SDK_CODE.invalidChainId,
  INVALID_SENDER: SDK_CODE.unauthorized,
  SENDER_NOT_EOA: SDK_CODE.unauthorized,
  INVALID_TRANSACTION: SDK_CODE.txDecode,
  UNPROTECTED: SDK_CODE.txDecode,
  TYPE_NOT_SUPPORTED: SDK_CODE.txDecode,
  INITCODE_TOO_LARGE: SDK_CODE.invalidRequest,
  TIP_ABOVE_FEE_CAP: SDK_CODE.invalidRequest,
};

/** Refusals that CometBFT's own mempool makes: an error of the request, not a result. */
const MEMPOOL_TEXTS: Readonly<Partial<Record<PoolErrorCode, string>>> = {
  ALREADY_KNOWN: "tx already exists in cache",
  POOL_FULL: "mempool is full",
  UNDERPRICED: "mempool is full",
  ACCOUNT_LIMIT: "mempool is full",
  TRANSACTION_TOO_LARGE: "tx too large",
};

/** A refused transaction as a result: `code` is never 0. */
export interface Refusal {
  readonly code: number;
  readonly log: string;
  readonly codespace: string;
}

/** The result for bytes that are no SDK transaction of ours. */
export function undecodable(error: unknown): Refusal {
  const log = `tx parse error: ${errorMessage(error)}`;
  return { code: SDK_CODE.txDecode, log, codespace: "sdk" };
}

/** The result for a sender that the signature does not prove. */
export const WRONG_SENDER: Refusal = {
  code: SDK_CODE.unauthorized,
  log: "signature verification failed: the sender is not the signer: unauthorized",
  codespace: "sdk",
};

/**
 * The pool's refusal as a result.
 * @throws INTERNAL for what is wrong with the pool, not with the transaction
 */
export function refusalOf(error: Error): Refusal {
  const code = error instanceof AppError ? error.code : "";
  const text = MEMPOOL_TEXTS[code as PoolErrorCode];
  if (text !== undefined)
    throw refused(text === error.message ? text : `${text}: ${error.message}`);
  if (error instanceof AppError && code === "SDK_FAULT") {
    const { sdkCode, codespace } = error.details;
    return { code: Number(sdkCode), log: error.message, codespace: String(codespace) };
  }
  const number = CODES[code as PoolErrorCode];
  if (number === undefined) throw new CometFault("INTERNAL", error.message, { cause: error });
  return { code: number, log: error.message, codespace: "sdk" };
}
