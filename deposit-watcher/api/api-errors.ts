/** The one place where faults become the deposit API's error bodies. */
import { AppError } from "../../chain/errors.js";
import { LedgerError, type LedgerErrorCode } from "../../ledger/errors.js";
import { isOfServer } from "../../rpc-client/data-api/data-api-client.js";
import { NodeFault, RpcError } from "../../rpc-client/errors.js";
import { HttpError, refusalOf, understoodStatus } from "../../runtime/http/http-errors.js";
import type { ErrorReply } from "../../runtime/http/http-server.js";
import { PostError } from "../../runtime/http/outgoing/guarded-post.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import { DepositError } from "../errors.js";

/** Body `{code, message, details}` and status for any fault; never 5xx for a client's fault. */
export function mapDepositError(error: unknown): ErrorReply {
  if (error instanceof HttpError && error.code === "INVALID_REQUEST") {
    const { status, code, details } = refusalOf(error, understoodStatus(error));
    return reply(status, code, error.message, details);
  }
  if (error instanceof DepositError && error.code === "NOT_FOUND") {
    return reply(404, "NOT_FOUND", error.message, error.details);
  }
  if (error instanceof DepositError && error.code === "INVALID_FIELD") {
    return reply(422, "INVALID_FIELD", error.message, error.details);
  }
  if (error instanceof DepositError && error.code === "RECOVERY_OPEN") {
    return reply(409, "RECOVERY_OPEN", error.message, {});
  }
  if (error instanceof DepositError && error.code === "OTHER_INCIDENT") {
    return reply(409, "OTHER_INCIDENT", error.message, {});
  }
  if (error instanceof DepositError && error.code === "OTHER_DEPOSIT_KEY") {
    return reply(409, "OTHER_DEPOSIT_KEY", error.message, error.details);
  }
  if (error instanceof LedgerError && error.code === "RECOVERY") {
    return reply(503, "RECOVERY", error.message, {});
  }
  if (error instanceof LedgerError) {
    const status = LEDGER_STATUS[error.code];
    const code = status === 404 ? "NOT_FOUND" : status === 422 ? "INVALID_FIELD" : error.code;
    if (status !== undefined) return reply(status, code, error.message, error.details);
  }
  // A client's URL; those of deliveries never come here.
  if (error instanceof PostError) {
    return reply(422, "INVALID_FIELD", error.message, { field: "url", reason: error.code });
  }
  if (error instanceof RpcError || isOfServer(error)) {
    const message = `the node or the Data API does not tell at the moment: ${error.message}`;
    return reply(503, "UNAVAILABLE", message, {});
  }
  if (error instanceof NodeFault && error.retriable) {
    return reply(503, "UNAVAILABLE", "the node or the Data API cannot be asked at the moment", {});
  }
  if (error instanceof SqlError || (error instanceof AppError && error.retriable)) {
    return reply(503, "UNAVAILABLE", "the ledger cannot be asked at the moment", {});
  }
  return reply(500, "INTERNAL", "an unexpected fault; see the log", {});
}

/** Refusals of the ledger that a client can do something about. */
const LEDGER_STATUS: Readonly<Partial<Record<LedgerErrorCode, number>>> = {
  WEBHOOK_UNKNOWN: 404,
  SECRET_UNKNOWN: 404,
  INVALID_WEBHOOK: 422,
  TOO_MANY_WEBHOOKS: 409,
  SECRETS_FULL: 409,
  LAST_SECRET: 409,
  OWN_ADDRESS: 409,
};

function reply(
  status: number,
  code: string,
  message: string,
  details: Readonly<Record<string, unknown>>,
): ErrorReply {
  return { status, body: { code, message, details } };
}
