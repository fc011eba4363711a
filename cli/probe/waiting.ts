/** Waiting for something to become true, with a deadline, signs of life, and a reason at the end. */
import { AppError } from "../../chain/errors.js";
import type { Clock } from "../../runtime/process/clock.js";
import { sleep } from "../../runtime/process/task.js";
import { CliError } from "../errors.js";

/** How long a step may take and how often it is looked at. */
export interface WaitOptions {
  /** What is waited for, as in "the deposit to be detected". */
  readonly what: string;
  readonly timeoutMs: number;
  readonly pollMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Told from time to time that the wait goes on: long work is never silent. */
  readonly onStillWaiting: (message: string) => void;
}

/** Longest silence; the contract allows 30 s. */
export const STILL_WAITING_MS = 10_000;

/**
 * Calls `look` until it gives a value. Faults that may pass (marked retriable) count as "not yet".
 * @throws STEP_FAILED at the deadline, naming what was waited for and the last fault
 */
export async function waitFor<T>(
  look: () => Promise<T | undefined>,
  options: WaitOptions,
): Promise<T> {
  const { clock, signal, what } = options;
  const startedMs = clock.monotonicMs();
  let lastWordMs = startedMs;
  let lastFault: AppError | undefined;
  for (;;) {
    signal.throwIfAborted();
    try {
      const value = await look();
      if (value !== undefined) return value;
      lastFault = undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AppError) || !error.retriable) throw error;
      lastFault = error;
    }
    const nowMs = clock.monotonicMs();
    const waitedSeconds = Math.round((nowMs - startedMs) / 1_000);
    if (nowMs - startedMs >= options.timeoutMs) {
      const reason = lastFault === undefined ? "" : ` The last fault was: ${lastFault.message}`;
      const message = `Waited ${waitedSeconds} s for ${what}, in vain.${reason}`;
      throw new CliError("STEP_FAILED", message, { cause: lastFault, details: { what } });
    }
    if (nowMs - lastWordMs >= STILL_WAITING_MS) {
      lastWordMs = nowMs;
      options.onStillWaiting(`still waiting for ${what} (${waitedSeconds} s)`);
    }
    await sleep(options.pollMs, { signal });
  }
}
