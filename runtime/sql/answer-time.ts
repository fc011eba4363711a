/** An end for statements whose server neither answers nor is gone. */
import type { ClientBase } from "pg";
import { endConnection } from "./lost-connections.js";
import { SqlError } from "./sql-errors.js";

/**
 * Longest that a pool waits for one statement: far above what any takes. The system asks a silent server
 * whether it lives (`KEEP_ALIVE`) only where all that was said to it was received: what was sent to a
 * machine that is gone is repeated for some 15 minutes, and a server that stands still, or a pooler whose
 * server is gone, is asked nothing.
 */
export const ANSWER_TIMEOUT_MS = 300_000;

/**
 * Runs a statement, and ends its connection where no answer comes in time: whether it was done is then
 * unknown, as on any connection that is lost.
 * @param timeoutMs above 0
 * @throws DATABASE_UNAVAILABLE, and what the statement throws
 */
export async function answered<T>(
  connection: ClientBase,
  timeoutMs: number,
  statement: () => Promise<T>,
): Promise<T> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    endConnection(connection);
  }, timeoutMs);
  try {
    return await statement();
  } catch (error) {
    if (!isLate) throw error;
    const message = `the database has not answered for ${timeoutMs / 1_000} s`;
    throw new SqlError("DATABASE_UNAVAILABLE", `DATABASE_UNAVAILABLE: ${message}`, {
      retriable: true,
      cause: error,
    });
  } finally {
    clearTimeout(timer);
  }
}
