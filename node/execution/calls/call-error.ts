/** Faults of the call workers, as callers outside this folder see them. */
import { AppError } from "../../../chain/errors.js";
import type { CallErrorCode } from "./call-port.js";

/** Codes of the port, and those of the workers themselves. */
export type CallFaultCode =
  | CallErrorCode
  /** The message cannot be executed at all: too little gas to begin, too large a creation. */
  | "INVALID_MESSAGE"
  /** The trace is larger than a worker may hold; a narrower one may fit. */
  | "TRACE_TOO_LARGE"
  /** The worker thread died under the job (out of memory, a fault in the code). */
  | "CALL_WORKER_FAILED"
  /** The node is stopping. */
  | "CALL_POOL_CLOSED";

/** A call, estimate or trace that could not be carried out; the EVM's own failures are results. */
export class CallError extends AppError<CallFaultCode> {}
