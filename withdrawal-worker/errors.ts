/** Coded faults of the withdrawal worker. */
import { AppError } from "../chain/errors.js";

/**
 * Codes. SIGNED_DIFFERENTLY: signed bytes do not say what was intended (never sent); WRONG_NODE:
 * the node belongs to another chain; NODE_BROKEN: it answers what cannot be true; NODE_BEHIND: it is
 * catching up or shows an older head; NO_KEY: nothing here opens the wallet that is to sign.
 */
export const WORKER_ERROR_CODES = [
  "SIGNED_DIFFERENTLY",
  "WRONG_NODE",
  "NODE_BROKEN",
  "NODE_BEHIND",
  "NO_KEY",
] as const;

/** One of `WORKER_ERROR_CODES`. */
export type WorkerErrorCode = (typeof WORKER_ERROR_CODES)[number];

/** A fault of the withdrawal worker; never carries key material. */
export class WorkerError extends AppError<WorkerErrorCode> {}

/** Codes of refusals that the withdrawal API makes itself; integrators switch on them. */
export type ApiErrorCode =
  | "INVALID_IDEMPOTENCY_KEY"
  | "INVALID_FIELD"
  | "FORBIDDEN_DESTINATION"
  | "UNKNOWN_ASSET"
  | "UNKNOWN_CUSTOMER"
  | "INSUFFICIENT_BALANCE"
  | "IDEMPOTENCY_KEY_REUSED"
  | "BELOW_MINIMUM"
  | "DEADLINE_PASSED"
  | "ALREADY_MINED"
  | "ALREADY_ENDED"
  | "FROZEN"
  | "NOT_FOUND";

/** A request that is answered with an error. */
export class ApiError extends AppError<ApiErrorCode> {
  constructor(
    /** HTTP status of the answer. */
    readonly status: 400 | 404 | 409 | 422,
    code: ApiErrorCode,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
  ) {
    super(code, message, { details });
  }
}
