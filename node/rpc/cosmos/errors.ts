/** Why a query is refused: gRPC's codes, which REST and `abci_query` show in their own ways. */
import { AppError, errorMessage } from "../../../chain/errors.js";
import { CometFault } from "../comet/errors.js";

/** Codes of gRPC that queries answer with. Source: grpc/status. */
export const GRPC_CODES = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;

/** Names of the codes of refusals. */
export type QueryFaultCode = Exclude<keyof typeof GRPC_CODES, "OK">;

/** A refused query; its message is what clients read. */
export class QueryFault extends AppError<QueryFaultCode> {}

/** INVALID_ARGUMENT. */
export function invalidArgument(message: string): QueryFault {
  return new QueryFault("INVALID_ARGUMENT", message);
}

/** NOT_FOUND. */
export function notFound(message: string): QueryFault {
  return new QueryFault("NOT_FOUND", message);
}

/** What a client sent that cannot be read. */
const CLIENT_FAULTS: readonly string[] = [
  "INVALID_MESSAGE",
  "INVALID_ADDRESS",
  "INVALID_HEX",
  "INVALID_TRANSACTION",
  "INVALID_RLP",
  "INVALID_SIGNATURE",
  "UNSUPPORTED_TRANSACTION_TYPE",
  "UNPROTECTED_TRANSACTION",
  "WRONG_CHAIN_ID",
  "INVALID_OVERRIDE",
];

/** Calls that the state does not allow. */
const CALL_FAULTS: readonly string[] = ["INSUFFICIENT_FUNDS", "GAS_ALLOWANCE_EXCEEDED"];

/**
 * Any error as a refusal; undefined for what is a fault of ours, and is to be logged.
 * State that was pruned is a precondition, not NOT_FOUND: nobody may take it for "no such account".
 */
export function faultOf(error: unknown): QueryFault | undefined {
  if (error instanceof QueryFault) return error;
  if (error instanceof CometFault) {
    // A search that cannot be read, or is too wide; its text says which.
    if (!error.retriable) return invalidArgument(error.message);
    return new QueryFault("UNAVAILABLE", error.message);
  }
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return new QueryFault("DEADLINE_EXCEEDED", "the query took too long");
  }
  if (error instanceof DOMException && error.name === "AbortError") {
    return new QueryFault("CANCELLED", "the query was cancelled");
  }
  const code = error instanceof AppError ? error.code : "";
  const text = errorMessage(error);
  if (CLIENT_FAULTS.includes(code)) return invalidArgument(text);
  if (CALL_FAULTS.includes(code)) return new QueryFault("FAILED_PRECONDITION", text);
  switch (code) {
    case "HISTORY_PRUNED":
      return new QueryFault("FAILED_PRECONDITION", text, { cause: error });
    case "STATE_READ_TOO_LARGE":
      return new QueryFault("RESOURCE_EXHAUSTED", text);
    case "CALL_TIMEOUT":
      return new QueryFault("DEADLINE_EXCEEDED", text);
    case "CALL_QUEUE_FULL":
    case "LANE_FULL":
    case "TRACE_TOO_LARGE":
      return new QueryFault("RESOURCE_EXHAUSTED", text);
    default:
      return undefined;
  }
}
