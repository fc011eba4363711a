/** What faults of the watcher's loops come to: incidents, what passes, and what ends the process. */
import { AppError } from "../chain/errors.js";
import type { Height } from "../chain/hex.js";
import { LedgerError } from "../ledger/errors.js";
import type { NewIncident } from "../ledger/incidents.js";
import { IncidentFound } from "./errors.js";

/** Incidents found by checks, and contradictions that the ledger itself refused. */
export function toIncident(error: unknown): NewIncident | undefined {
  if (error instanceof IncidentFound) return error.incident;
  if (!(error instanceof LedgerError) || NO_INCIDENT.has(error.code)) return undefined;
  return {
    kind: "LEDGER_CONFLICT",
    height: undefined,
    message: `the ledger refused what the chain says: ${error.message}`,
    details: { code: error.code, ...error.details },
  };
}

/** Looks in a row that have to find the same before it is an incident. */
const AGREEING_LOOKS = 3;

/**
 * What a loop has found to be impossible, and how often in a row: one answer may come from a node behind a
 * balancer that is late or wrong, so looks have to agree.
 */
export class AgreeingLooks {
  #about = "";
  #looks = 0;

  /** Another look has found it. @returns whether enough of them agree */
  isConfirmed(
    { kind, height }: NewIncident,
    { cursorHeight }: { readonly cursorHeight: Height },
  ): boolean {
    // Nodes are compared by the last block of a run, which ends higher with each look.
    const place = kind === "NODES_DISAGREE" ? cursorHeight : height;
    const about = `${kind} ${place ?? ""}`;
    this.#looks = this.#about === about ? this.#looks + 1 : 1;
    this.#about = about;
    // Heads below the cursor are counted where they are read.
    const needed = kind === "HEIGHT_WENT_BACK" ? 1 : AGREEING_LOOKS;
    if (this.#looks < needed) return false;
    this.clear();
    return true;
  }

  /** A look has found nothing of the kind. */
  clear(): void {
    this.#looks = 0;
  }
}

/** Faults of the ledger that say nothing about the chain. */
const NO_INCIDENT: ReadonlySet<string> = new Set(["CORRUPT_ROW", "HOME_MARK_UNUSABLE", "RECOVERY"]);

/** Codes of faults of what each watcher has for itself: its node, its Data API, its home. */
const OWN_CODES: ReadonlySet<string> = new Set([
  "NOT_READY",
  "STALE_HEAD",
  "TIMEOUT",
  "RPC_ERROR",
  "DATA_API_ERROR",
  "NODE_UNREACHABLE",
  "NODE_TIMEOUT",
  "NODE_HTTP_STATUS",
  "BAD_ANSWER",
  "ANSWER_TOO_LARGE",
  "HOME_MARK_UNUSABLE",
]);

/** Codes of faults that pass by themselves, or once somebody repairs what they name. */
const CURABLE_CODES: ReadonlySet<string> = new Set([
  ...OWN_CODES,
  "CONFLICT",
  "DATABASE_UNAVAILABLE",
  "DATABASE_FULL",
  "DATABASE_FAULT",
  "RECOVERY",
]);

/** Whether another watcher of the same ledger may be spared a fault. */
export function isOwn(error: unknown): boolean {
  return error instanceof AppError && OWN_CODES.has(error.code);
}

/** Whether waiting may cure a fault. */
export function isCurable(error: unknown): boolean {
  return error instanceof AppError && CURABLE_CODES.has(error.code);
}
