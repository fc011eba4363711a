/** The pool's refusals as the SDK's result codes, which wallets of SDK chains know. */
import { AppError, errorMessage } from "../../../chain/errors.js";
import { SDK_CODE, sdkFault } from "../../../chain/cosmos/sdk-fault.js";
import type { PoolErrorCode } from "../../mempool/pool-port.js";
import { CometFault } from "./errors.js";

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
const MEMPOOL_REFUSALS: Readonly<Partial<Record<PoolErrorCode, readonly [string, number]>>> = {
  ALREADY_KNOWN: ["tx already exists in cache", SDK_CODE.alreadyInMempool],
  POOL_FULL: ["mempool is full", SDK_CODE.mempoolFull],
  UNDERPRICED: ["mempool is full", SDK_CODE.mempoolFull],
  ACCOUNT_LIMIT: ["mempool is full", SDK_CODE.mempoolFull],
  TRANSACTION_TOO_LARGE: ["tx too large", SDK_CODE.transactionTooLarge],
};

/** A refusal of CometBFT's mempool: the consensus RPC's error, and a result for SDK clients. */
export class MempoolFault extends CometFault {
  constructor(
    message: string,
    /** What the SDK makes of it (client/broadcast.go): code 19, 20 or 21. */
    readonly refusal: Refusal,
  ) {
    super("INTERNAL", message);
  }
}

/** The refusal of bytes that pool or chain have already. */
export function alreadyKnown(): MempoolFault {
  const text = "tx already exists in cache";
  return new MempoolFault(text, { code: SDK_CODE.alreadyInMempool, log: text, codespace: "sdk" });
}

/** A refused transaction as a result: `code` is never 0. */
export interface Refusal {
  readonly code: number;
  readonly log: string;
  readonly codespace: string;
}

/** The result for bytes that are no SDK transaction of ours. */
export function undecodable(error: unknown): Refusal {
  return sdkFault(SDK_CODE.txDecode, errorMessage(error));
}

/** The result for a sender that the signature does not prove. */
export const WRONG_SENDER: Refusal = {
  code: SDK_CODE.unauthorized,
  log: "signature verification failed: the sender is not the signer: unauthorized",
  codespace: "sdk",
};

/** The result for a transaction without a message. */
export const NOTHING_ASKED: Refusal = sdkFault(
  SDK_CODE.invalidRequest,
  "must contain at least one message",
);

/**
 * The pool's refusal as a result.
 * @throws MempoolFault for what CometBFT's mempool refuses, INTERNAL for what is wrong with the pool
 */
export function refusalOf(error: Error): Refusal {
  const code = error instanceof AppError ? error.code : "";
  const [text, sdkCode] = MEMPOOL_REFUSALS[code as PoolErrorCode] ?? [];
  if (text !== undefined && sdkCode !== undefined) {
    const message = text === error.message ? text : `${text}: ${error.message}`;
    throw new MempoolFault(message, { code: sdkCode, log: message, codespace: "sdk" });
  }
  if (error instanceof AppError && code === "SDK_FAULT") {
    const { sdkCode: own, codespace } = error.details;
    return { code: Number(own), log: error.message, codespace: String(codespace) };
  }
  const number = CODES[code as PoolErrorCode];
  if (number === undefined) {
    const retriable = error instanceof AppError && error.retriable;
    throw new CometFault("INTERNAL", error.message, { retriable, cause: error });
  }
  return { code: number, log: error.message, codespace: "sdk" };
}
