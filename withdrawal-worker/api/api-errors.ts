/** The one place where faults become the withdrawal API's error bodies. */
import { AppError } from "../../chain/errors.js";
import { LedgerError } from "../../ledger/errors.js";
import { HttpError, refusalOf, understoodStatus } from "../../runtime/http/http-errors.js";
import type { ErrorReply } from "../../runtime/http/http-server.js";
import { ApiError, WorkerError } from "../errors.js";

/** Body `{code, message, details}` and status for any fault; never 5xx for a client's fault. */
export function mapWithdrawalError(error: unknown): ErrorReply {
  if (error instanceof ApiError) {
    return reply(error.status, error.code, error.message, error.details);
  }
  if (error instanceof HttpError && error.code === "INVALID_REQUEST") return mapRequest(error);
  if (error instanceof LedgerError && error.code === "RECOVERY") {
    return reply(503, "RECOVERY", error.message, {});
  }
  if (error instanceof WorkerError && error.code === "POLICY_UNREADABLE") {
    return reply(503, "UNAVAILABLE", "the policy of payments cannot be used: see /ready", {});
  }
  if (error instanceof AppError && error.retriable) {
    return reply(503, "UNAVAILABLE", "the ledger cannot be asked at the moment", {});
  }
  return reply(500, "INTERNAL", "an unexpected fault; see the log", {});
}

/** An Idempotency-Key that comes twice is a malformed one, as the route has it. */
function mapRequest(error: HttpError): ErrorReply {
  if (error.errors.some(({ path }) => /^\/headers\/idempotency-key$/i.test(path))) {
    return reply(400, "INVALID_IDEMPOTENCY_KEY", error.message, refusalOf(error).details);
  }
  const { status, code, details } = refusalOf(error, understoodStatus(error));
  return reply(status, code, error.message, details);
}

function reply(
  status: number,
  code: string,
  message: string,
  details: Readonly<Record<string, unknown>>,
): ErrorReply {
  return { status, body: { code, message, details } };
}
