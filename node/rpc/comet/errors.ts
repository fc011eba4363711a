/** Errors of the consensus RPC: CometBFT's numbers and texts; what went wrong is in `data`. */
import { AppError } from "../../../chain/errors.js";

/** Number and message of each code. */
export const COMET_ERRORS = {
  PARSE_ERROR: [-32700, "Parse error. Invalid JSON"],
  INVALID_REQUEST: [-32600, "Invalid Request"],
  METHOD_NOT_FOUND: [-32601, "Method not found"],
  INVALID_PARAMS: [-32602, "Invalid params"],
  INTERNAL: [-32603, "Internal error"],
  SERVER_ERROR: [-32000, "Server error"],
} as const;

/** One of the codes of `COMET_ERRORS`. */
export type CometFaultCode = keyof typeof COMET_ERRORS;

/**
 * A fault that is answered; its message is what clients read in `error.data`. A retriable one says nothing
 * against the request: SDK clients are told that the node is unavailable.
 */
export class CometFault extends AppError<CometFaultCode> {}

/** INTERNAL: what CometBFT answers for everything that a route itself refuses. */
export function refused(reason: string): CometFault {
  return new CometFault("INTERNAL", reason);
}

/** The same where the request is right, and the node has no room for it now. */
export function busy(reason: string): CometFault {
  return new CometFault("INTERNAL", reason, { retriable: true });
}

/** INVALID_PARAMS. */
export function invalidArgument(name: string, wanted: string): CometFault {
  const text = `error converting params to arguments: ${name}: expected ${wanted}`;
  return new CometFault("INVALID_PARAMS", text);
}
