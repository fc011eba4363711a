/** Coded faults of the deposit watcher and its API. */
import { AppError } from "../chain/errors.js";
import type { NewIncident } from "../ledger/incidents.js";

/**
 * Codes of the watcher. INCIDENT: a fact that must not happen on this chain, crediting stops;
 * NOT_READY: the node is not one to credit from yet; DERIVATION_MISMATCH: the two derivations of
 * an address disagree; INVALID_XPUB: the extended public key of the home is unusable;
 * HEIGHT_BEFORE_RECEIPT: confirmations of a block above the head; INVALID_FIELD: a request was
 * understood and refused; NOT_FOUND: no such row.
 */
export const DEPOSIT_ERROR_CODES = [
  "INCIDENT",
  "NOT_READY",
  "DERIVATION_MISMATCH",
  "INVALID_XPUB",
  "HEIGHT_BEFORE_RECEIPT",
  "INVALID_FIELD",
  "NOT_FOUND",
] as const;

/** One of `DEPOSIT_ERROR_CODES`. */
export type DepositErrorCode = (typeof DEPOSIT_ERROR_CODES)[number];

/** A fault of this folder. */
export class DepositError extends AppError<DepositErrorCode> {}

/** Thrown where a check finds an incident; the loop writes it down and stops crediting. */
export class IncidentFound extends AppError<"INCIDENT"> {
  readonly incident: NewIncident;

  constructor(incident: NewIncident) {
    super("INCIDENT", incident.message, { details: incident.details });
    this.incident = incident;
  }
}
