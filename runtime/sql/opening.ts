/** Opening what a process needs of its database, although the server comes, goes and comes back. */
import { errorMessage } from "../../chain/errors.js";
import type { Logger } from "../process/logger.js";
import { retry } from "../process/task.js";
import { SqlError } from "./sql-errors.js";

/** How long a server that is not there is waited for. */
const START_TIMEOUT_MS = 30_000;

const MIN_DELAY_MS = 100;
const MAX_DELAY_MS = 1_000;

/** How patiently. */
export interface PatienceOptions {
  readonly log: Logger;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
  /** From when on a lost server is a fault; default 30,000. */
  readonly startTimeoutMs?: number;
}

/**
 * Calls `open` until it ends: again where the server is not there yet, or is lost half way. What `open` has
 * opened it closes before it throws.
 * @throws DATABASE_UNAVAILABLE behind the time-out, other faults at once; the signal's reason
 */
export function openPatiently<T>(
  open: () => Promise<T>,
  { log, signal, startTimeoutMs = START_TIMEOUT_MS }: PatienceOptions,
): Promise<T> {
  const deadlineMs = performance.now() + startTimeoutMs;
  return retry(open, {
    signal,
    minDelayMs: MIN_DELAY_MS,
    maxDelayMs: MAX_DELAY_MS,
    isRetriable: (error) =>
      error instanceof SqlError &&
      error.code === "DATABASE_UNAVAILABLE" &&
      performance.now() < deadlineMs,
    onRetry: (error) => log.warn({ reason: errorMessage(error) }, "no database yet: trying again"),
  });
}
