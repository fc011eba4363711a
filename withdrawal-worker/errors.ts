/** Coded faults of the withdrawal worker. */
import { AppError } from "../chain/errors.js";

/**
 * Codes. SIGNED_DIFFERENTLY: signed bytes do not say what was intended (never sent);
 * SIGNER_UNREACHABLE: who holds the key gives no signature now; POLICY_UNREADABLE: the policy file is
 * gone or wrong, or another home's took its place; WRONG_NODE: the node belongs to another chain;
 * NODE_BROKEN: it answers what cannot be true; NODE_BEHIND: it is catching up;
 * NO_KEY: nothing here opens the wallet that is to sign.
 */
const WORKER_ERROR_CODES = [
  "SIGNED_DIFFERENTLY",
  "SIGNER_UNREACHABLE",
  "POLICY_UNREADABLE",
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
  | "ABOVE_MAXIMUM"
  | "LIMIT_EXCEEDED"
  | "DESTINATION_NOT_LISTED"
  | "DESTINATION_TOO_NEW"
  | "WITHDRAWALS_STOPPED"
  | "NOT_PENDING"
  | "OWN_REQUEST"
  | "SAID_OTHERWISE"
  | "SIGNATURE_NEEDED"
  | "BAD_SIGNATURE"
  | "POLICY_CHANGED"
  | "SWITCH_LOWERED"
  | "ALREADY_MINED"
  | "ALREADY_ENDED"
  | "UNAVAILABLE"
  | "NOT_FOUND";

/** A request that is answered with an error. */
export class ApiError extends AppError<ApiErrorCode> {
  constructor(
    /** HTTP status of the answer. */
    readonly status: 400 | 404 | 409 | 422 | 503,
    code: ApiErrorCode,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
    /** For the log alone. */
    cause?: unknown,
  ) {
    super(code, message, { details, cause });
  }
}
