/**
 * Reads of the index in turns. Anybody may ask, and of an account with a long history a question can be found
 * that takes as long as a read may: a few of those alone would have all connections to the database.
 * So each read has a short time at first, and what takes longer is done once more in one of a few turns that
 * are kept for it. Of both kinds clients have turns one after the other, and who is gone has none.
 */
import type { HttpRequest } from "../../runtime/http/http-route.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import { STATEMENT_TIMEOUT } from "../../runtime/sql/time-limit.js";
import { clientOf } from "../../runtime/turns/client-address.js";
import { Turns } from "../../runtime/turns/turns.js";
import { IndexerError } from "../errors.js";

/** Whose a read is, and until when he waits for it. */
export type Asker = Pick<HttpRequest, "signal" | "remoteAddress">;

/** What the API reads from. */
export interface IndexReads extends Sql {
  /**
   * Runs reads that all see the index as of one moment. They may be run a second time.
   * @throws TOO_MANY_READS, the signal's reason, SqlError (`isTooSlow` where they took too long)
   */
  snapshot<T>(work: (sql: Sql) => Promise<T>, asker: Asker): Promise<T>;
}

/** A read, with all its statements, that takes longer than this is given up. */
export const READ_LIMIT_MS = 15_000;

/** Nearly all reads take a few milliseconds. */
const SHORT_READ_MS = 500;

/** Connections for reads that have not shown yet how long they take, and for those that take longer. */
const SHORT_TURNS = 5;
const LONG_TURNS = 2;

/** Connections of the API: one is for what has no turns, the readers of the stream. */
export const READ_CONNECTIONS = SHORT_TURNS + LONG_TURNS + 1;

/** Reads of each kind that wait, and for how long: then others would not be answered in time either. */
const SHORT_WAITING = { maxWaiting: 512, maxWaitMs: 10_000 };
const LONG_WAITING = { maxWaiting: 32, maxWaitMs: 30_000 };

/** Whether a read took longer than it may. */
export function isTooSlow(error: unknown): boolean {
  return error instanceof SqlError && error.details["sqlState"] === STATEMENT_TIMEOUT;
}

/** Puts turns before a database with `READ_CONNECTIONS`. */
export function readsInTurns(database: Pick<SqlDatabase, "query" | "snapshot">): IndexReads {
  const turnsOf = (maxRunning: number, waiting: typeof SHORT_WAITING) =>
    new Turns({ maxRunning, ...waiting, full: tooMany });
  const shortTurns = turnsOf(SHORT_TURNS, SHORT_WAITING);
  const longTurns = turnsOf(LONG_TURNS, LONG_WAITING);
  return {
    query: (text, parameters) => database.query(text, parameters),
    async snapshot(work, { signal, remoteAddress }) {
      const client = clientOf(remoteAddress);
      const within = (timeLimitMs: number) => () => database.snapshot(work, { timeLimitMs });
      try {
        return await shortTurns.run(signal, within(SHORT_READ_MS), client);
      } catch (error) {
        if (!isTooSlow(error)) throw error;
      }
      return longTurns.run(signal, within(READ_LIMIT_MS), client);
    },
  };
}

function tooMany(): IndexerError {
  const message = "too many reads wait for the database: ask again later";
  return new IndexerError("TOO_MANY_READS", message, { details: { retryAfterSeconds: 2 } });
}
