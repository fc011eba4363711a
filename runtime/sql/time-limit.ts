/** One end for all statements of a transaction: the server's own is of each statement. */
import type { Clock } from "../process/clock.js";
import { SqlError } from "./sql-errors.js";

/** SQLSTATE of a statement that took longer than it may. */
export const STATEMENT_TIMEOUT = "57014";

/**
 * How far the server's time for a statement may be above what is left, as a part of the whole: to say it
 * anew before each would be a way to the database more for all that take no time.
 */
const TOLERANCE = 1 / 10;

/** The statement by which a transaction that begins has so much time. */
export function beginsWithin(limitMs: number): string {
  return `SET LOCAL statement_timeout = ${Math.max(1, Math.ceil(limitMs))}`;
}

/**
 * Of a transaction that began with `beginsWithin`: what has to be said to the server before the next
 * statement, undefined for nothing. What runs when the time is over is given up by the server, at most
 * `TOLERANCE` later, and what comes behind is refused: both are faults with `STATEMENT_TIMEOUT`. The time
 * between statements counts.
 */
export function timeLimit(
  limitMs: number,
  clock: Pick<Clock, "monotonicMs">,
): () => string | undefined {
  const endMs = clock.monotonicMs() + limitMs;
  let givenMs = limitMs;
  return () => {
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0) throw timeOver(limitMs);
    if (givenMs - leftMs <= TOLERANCE * limitMs) return undefined;
    givenMs = leftMs;
    return beginsWithin(leftMs);
  };
}

function timeOver(limitMs: number): SqlError {
  const message = `DATABASE_UNAVAILABLE: reads took longer than ${limitMs} ms`;
  const details = { sqlState: STATEMENT_TIMEOUT };
  return new SqlError("DATABASE_UNAVAILABLE", message, { details, retriable: true });
}
