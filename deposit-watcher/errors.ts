/** Coded faults of the deposit watcher and its API. */
import { AppError } from "../chain/errors.js";
import type { NewIncident } from "../ledger/incidents.js";

/**
 * Codes of the watcher. INCIDENT: a fact that must not happen on this chain, crediting stops;
 * NOT_READY: the node is not one to credit from yet; STALE_HEAD: it shows a head below what is
 * booked, as a late node behind a balancer does; INVALID_FIELD: a request was understood and
 * refused; NOT_FOUND: no such row; RECOVERY_OPEN: an incident that nobody resumes; OTHER_INCIDENT: the
 * one that is meant is not open; OTHER_DEPOSIT_KEY: this home's is not the one of the ledger's addresses.
 */
const DEPOSIT_ERROR_CODES = [
  "INCIDENT",
  "NOT_READY",
  "STALE_HEAD",
  "INVALID_FIELD",
  "NOT_FOUND",
  "RECOVERY_OPEN",
  "OTHER_INCIDENT",
  "OTHER_DEPOSIT_KEY",
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
