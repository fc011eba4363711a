/**
 * Every error of the Data and Construction APIs: one numbered table, served by /network/options.
 * Number, message and retriable are constant per code (integrators snapshot them); what varies
 * goes into `details`. A number is never used again for another meaning.
 */
import { AppError, type ErrorDetails, errorCode } from "../../chain/errors.js";
import { isBusyCode, RPC_CODES } from "../../chain/evm/rpc-codes.js";

interface TableEntry {
  /** Rosetta `code`. */
  readonly number: number;
  readonly message: string;
  readonly description: string;
  readonly retriable: boolean;
}

function final(number: number, message: string, description: string): TableEntry {
  return { number, message, description, retriable: false };
}

function transient(number: number, message: string, description: string): TableEntry {
  return { number, message, description, retriable: true };
}

/** The table. 1-99 requests, 100-199 node, 200-299 data, 300-399 construction, 400-499 submit. */
export const ERROR_TABLE = {
  INVALID_REQUEST: final(1, "invalid request", "The request breaks the API's schema."),
  UNKNOWN_NETWORK: final(2, "unknown network", "This server answers for another network."),
  UNAVAILABLE_OFFLINE: final(3, "unavailable offline", "The offline server has no node to ask."),
  NOT_AVAILABLE: final(4, "not available", "This endpoint is listed by Rosetta but not served."),
  COINS_NOT_SUPPORTED: final(5, "coins not supported", "Accounts have balances, not coins."),
  ENDPOINT_NOT_FOUND: final(6, "endpoint not found", "No such path, or not with this method."),
  REQUEST_TOO_LARGE: final(7, "request too large", "The body is longer than the server takes."),
  SERVER_BUSY: transient(8, "server busy", "Too many large or long requests at once."),
  INTERNAL: final(99, "internal error", "A fault of this server; its log says more."),

  NODE_UNREACHABLE: transient(101, "node unreachable", "The node does not answer."),
  NODE_TIMEOUT: transient(102, "node timed out", "The node did not answer in time."),
  NODE_SYNCING: transient(103, "node syncing", "The node is behind the chain."),
  NODE_BUSY: transient(104, "node busy", "The node refuses work for now."),
  NODE_WRONG_CHAIN: final(105, "node on another chain", "The node's chain id is not configured."),
  NODE_FAULT: final(106, "node fault", "The node's answer cannot be believed."),
  NODE_REFUSED: final(107, "node refused", "The node refused the request."),
  NODE_HALTED: transient(108, "node halted", "The node stopped making blocks."),

  INDEX_BEHIND: transient(109, "index behind", "This server is still reading the chain."),
  INDEX_WRITE_FAILED: final(110, "index write failed", "The index cannot be written; see the log."),

  BLOCK_NOT_FOUND: final(201, "block not found", "The chain has no such block."),
  BLOCK_ABOVE_TIP: transient(202, "block above tip", "The chain has not come to this index yet."),
  BLOCK_IDENTIFIER_MISMATCH: final(203, "block identifier mismatch", "Index and hash disagree."),
  BLOCK_PRUNED: final(204, "block pruned", "The node no longer has this state."),
  TRANSACTION_NOT_FOUND: final(205, "transaction not found", "Not in the block that was named."),
  INVALID_ACCOUNT: final(206, "invalid account", "Not a 0x address, or its checksum is wrong."),
  SUB_ACCOUNT_NOT_SUPPORTED: final(207, "sub-account not supported", "No such sub-account."),
  UNKNOWN_CURRENCY: final(208, "unknown currency", "The currency is not one this server knows."),
  JOURNAL_INCONSISTENT: final(209, "journal inconsistent", "Operations do not add up to supply."),
  NOT_IN_MEMPOOL: final(210, "transaction not in mempool", "The node's pool does not hold it."),
  CALL_METHOD_UNKNOWN: final(211, "call method unknown", "/network/options lists call_methods."),
  CALL_PARAMETERS_INVALID: final(212, "call parameters invalid", "See the method's description."),
  CALL_FAILED: final(213, "call failed", "The node executed the call and it did not succeed."),
  SEARCH_TOO_BROAD: final(214, "search too broad", "Name an account, a hash or a lower max_block."),
  EVENTS_OUT_OF_RANGE: transient(215, "events out of range", "Beyond the next event to come."),
  TRANSACTION_NOT_MINED: transient(
    216,
    "transaction not mined",
    "In no block yet, or never sent; ask again.",
  ),

  INVALID_PUBLIC_KEY: final(301, "invalid public key", "Not a point of secp256k1."),
  INVALID_OPERATIONS: final(302, "invalid operations", "Not one transfer between two accounts."),
  OPERATION_NOT_SUPPORTED: final(303, "operation not supported", "This type is not constructed."),
  INVALID_METADATA: final(304, "invalid metadata", "An override, option or metadata is wrong."),
  INVALID_UNSIGNED_TRANSACTION: final(305, "invalid unsigned transaction", "Not made by payloads."),
  INVALID_SIGNED_TRANSACTION: final(306, "invalid signed transaction", "Not canonical raw bytes."),
  WRONG_CHAIN_ID: final(307, "wrong chain id", "The transaction is for another chain."),
  TRANSACTION_TYPE_NOT_SUPPORTED: final(308, "transaction type not supported", "Only type 0."),
  TRANSACTION_UNPROTECTED: final(309, "transaction unprotected", "EIP-155 is required."),
  INVALID_SIGNATURE: final(310, "invalid signature", "Malformed, high s, or not recoverable."),
  SIGNER_MISMATCH: final(311, "signer mismatch", "The signature is not the sender's."),
  SIGNING_PAYLOAD_MISMATCH: final(312, "signing payload mismatch", "Another digest was signed."),
  MAX_FEE_EXCEEDED: final(313, "max fee exceeded", "The fee would be above max_fee."),
  INSUFFICIENT_FUNDS: final(314, "insufficient funds", "Balance below what it needs; see details."),
  CALL_REVERTED: final(315, "call reverted", "The recipient's code refuses this call."),
  TOKEN_UNAVAILABLE: final(
    316,
    "token unavailable",
    "Its contract is missing or tells no balance, or it is quarantined.",
  ),

  NONCE_TOO_LOW: final(401, "nonce too low", "The nonce was used by another transaction."),
  NONCE_TOO_HIGH: final(402, "nonce too high", "The nonce is too far ahead."),
  REPLACEMENT_UNDERPRICED: final(403, "replacement underpriced", "Needs a 10 % higher price."),
  GAS_PRICE_TOO_LOW: final(404, "gas price too low", "Below the node's minimum."),
  INTRINSIC_GAS_TOO_LOW: final(405, "intrinsic gas too low", "The gas limit cannot suffice."),
  GAS_LIMIT_EXCEEDED: final(406, "gas limit exceeded", "The gas limit is above the chain's."),
  MEMPOOL_FULL: transient(407, "mempool full", "The node's pool takes no more for now."),
  ACCOUNT_LIMIT_EXCEEDED: transient(408, "account limit exceeded", "Too many pending at once."),
  TRANSACTION_TOO_LARGE: final(409, "transaction too large", "More bytes than the pool takes."),
  TRANSACTION_REFUSED: final(410, "transaction refused", "Refused for a reason not listed here."),
} as const satisfies Readonly<Record<string, TableEntry>>;

/** Codes of the sidecar's errors. */
export type SidecarErrorCode = keyof typeof ERROR_TABLE;

/** An error of the table; its message and retriable are the table's. */
export class SidecarError extends AppError<SidecarErrorCode> {
  constructor(code: SidecarErrorCode, details: ErrorDetails = {}, cause?: unknown) {
    const entry: TableEntry = ERROR_TABLE[code];
    super(code, entry.message, { details, retriable: entry.retriable, cause });
  }
}

/** Bytes of a revert that travel in an error; Solidity's own errors have a few hundred. */
const MAX_REVERT_BYTES = 16_384;

/**
 * Returned bytes of a revert as details, or their length alone where they are many: a contract gives
 * back what it likes, megabytes of it.
 */
export function revertDetails(data: unknown): ErrorDetails {
  if (typeof data !== "string") return {};
  const sizeBytes = (data.length - 2) / 2;
  return sizeBytes <= MAX_REVERT_BYTES ? { data } : { data_size_bytes: sizeBytes };
}

/** Rosetta's `Error` object. */
export interface RosettaErrorBody {
  readonly code: number;
  readonly message: string;
  readonly description: string;
  readonly retriable: boolean;
  readonly details?: ErrorDetails;
}

/** All errors as /network/options lists them, without details, by number. */
export function listedErrors(): RosettaErrorBody[] {
  return Object.values(ERROR_TABLE)
    .map((entry: TableEntry) => bodyOf(entry))
    .toSorted((left, right) => left.code - right.code);
}

/**
 * Any thrown value as an error of the table. Faults of the node's clients are recognised by code,
 * so that the offline server needs no import of them.
 */
export function toSidecarError(error: unknown): SidecarError {
  if (error instanceof SidecarError) return error;
  // Its signal ended the work: the process stops, and may be asked again, or the client is gone.
  if (error instanceof Error && error.name === "AbortError") {
    return new SidecarError("INDEX_BEHIND", { reason: "stopping" }, error);
  }
  if (!(error instanceof AppError)) return new SidecarError("INTERNAL", {}, error);
  switch (error.code) {
    case "INVALID_REQUEST":
      return invalidRequest(error);
    case "NODE_UNREACHABLE":
    case "NODE_HTTP_STATUS":
      return new SidecarError("NODE_UNREACHABLE", error.details, error);
    case "NODE_TIMEOUT":
      return new SidecarError("NODE_TIMEOUT", error.details, error);
    case "BAD_ANSWER":
    case "ANSWER_TOO_LARGE":
      return new SidecarError("NODE_FAULT", { reason: error.message }, error);
    case "RPC_ERROR":
      return rpcRefusal(error);
    default:
      return new SidecarError("INTERNAL", { reason: errorCode(error) }, error);
  }
}

/** How much a fault matters to whoever runs the server. */
export type FaultSeverity = "error" | "warn" | "debug";

/**
 * Rosetta answers 500 to everything, so the status does not tell: "error" when something is wrong
 * that will not mend itself, "warn" when the node is away for now, "debug" for the client's own.
 */
export function severityOf(error: unknown): FaultSeverity {
  const { code, retriable } = toSidecarError(error);
  if (SERVER_FAULTS.has(code)) return "error";
  return code.startsWith("NODE_") && retriable ? "warn" : "debug";
}

const SERVER_FAULTS: ReadonlySet<SidecarErrorCode> = new Set([
  "INTERNAL",
  "INDEX_WRITE_FAILED",
  "JOURNAL_INCONSISTENT",
  "NODE_FAULT",
  "NODE_WRONG_CHAIN",
]);

/** HTTP answer for any thrown value: Rosetta knows 200 and 500 only. */
export function toErrorResponse(error: unknown): { status: number; body: RosettaErrorBody } {
  const { code, details } = toSidecarError(error);
  return { status: 500, body: bodyOf(ERROR_TABLE[code], details) };
}

function bodyOf(entry: TableEntry, details: ErrorDetails = {}): RosettaErrorBody {
  const { number, message, description, retriable } = entry;
  const hasDetails = Object.keys(details).length > 0;
  return { code: number, message, description, retriable, ...(hasDetails ? { details } : {}) };
}

/** The HTTP status that the validator would have answered tells what was wrong. */
function invalidRequest(error: AppError): SidecarError {
  const { status, ...details } = error.details;
  if (status === 404 || status === 405) {
    return new SidecarError("ENDPOINT_NOT_FOUND", details, error);
  }
  if (status === 429) return new SidecarError("SERVER_BUSY", details, error);
  return new SidecarError(status === 413 ? "REQUEST_TOO_LARGE" : "INVALID_REQUEST", details, error);
}

function rpcRefusal(error: AppError): SidecarError {
  const rpcCode = error.details["rpcCode"];
  if (rpcCode === RPC_CODES.pruned) return new SidecarError("BLOCK_PRUNED", {}, error);
  if (isBusyCode(rpcCode)) return new SidecarError("NODE_BUSY", {}, error);
  return new SidecarError("NODE_REFUSED", { rpcCode, reason: error.message }, error);
}
