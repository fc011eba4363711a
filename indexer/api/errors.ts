/** The one place where faults become problem+json (RFC 9457). */
import { AppError } from "../../chain/errors.js";
import { HttpError, refusalOf } from "../../runtime/http/http-errors.js";
import type { ErrorReply } from "../../runtime/http/http-server.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import { IndexerError, type IndexerErrorCode } from "../errors.js";
import { isTooSlow, READ_LIMIT_MS } from "./index-reads.js";

const STATUS_OF: Readonly<Partial<Record<IndexerErrorCode, number>>> = {
  NOT_FOUND: 404,
  INVALID_FIELD: 422,
  CURSOR_MISMATCH: 422,
  NOT_INDEXED_YET: 404,
  RATE_LIMITED: 429,
  TOO_MANY_STREAMS: 503,
  TOO_MANY_READS: 503,
  EXPORT_BUSY: 429,
  NO_INDEX: 503,
  BURN_ADDRESS_UNKNOWN: 503,
};

/** The same question would hardly be answered later either: nobody is told to ask it again. */
const TOO_SLOW = "ANSWER_TOO_SLOW";

const TOO_MUCH =
  `the answer took longer than ${READ_LIMIT_MS / 1_000} s: ask for less of it, for example ` +
  "by fromBlock and toBlock, or with fewer filters";

/** Body and status for any fault; never 5xx for a client's fault. */
export function mapIndexerError(error: unknown): ErrorReply {
  if (error instanceof HttpError && error.code === "INVALID_REQUEST") {
    // The validator says 400 for everything; a field that breaks a rule was understood.
    const isField = error.errors.some(
      ({ path, errorCode }) => /^\/(query|params)\//.test(path) || errorCode !== "",
    );
    const status = error.status === 400 && isField ? 422 : error.status;
    const refusal = refusalOf(error, status);
    return problem(refusal.status, refusal.code, error.message, refusal.details);
  }
  if (error instanceof IndexerError) {
    const status = STATUS_OF[error.code];
    if (status !== undefined) {
      // A 5xx of these goes by itself: blocks are still coming, or readers are.
      return {
        ...problem(status, error.code, error.message, error.details),
        isExpected: true,
      };
    }
  }
  if (error instanceof Error && error.name === "AbortError") {
    // Nobody reads it: the client has left. What it asked for is no fault of this program.
    return { ...problem(503, "UNAVAILABLE", "the client has left", {}), isExpected: true };
  }
  if (isTooSlow(error)) return problem(503, TOO_SLOW, TOO_MUCH, {});
  if (error instanceof SqlError || (error instanceof AppError && error.retriable)) {
    return problem(503, "UNAVAILABLE", "the index cannot be asked at the moment", {});
  }
  return problem(500, "INTERNAL", "an unexpected fault; see the log", {});
}

function problem(
  status: number,
  code: string,
  detail: string,
  details: Readonly<Record<string, unknown>>,
): ErrorReply {
  const title = code.toLowerCase().replaceAll("_", " ");
  const retry = details["retryAfterSeconds"];
  const passes = status === 429 || (status === 503 && code !== TOO_SLOW);
  return {
    status,
    body: { ...details, type: "about:blank", title, status, code, detail },
    headers: {
      "content-type": "application/problem+json",
      ...(passes ? { "retry-after": String(typeof retry === "number" ? retry : 1) } : {}),
    },
  };
}
