/** PostgreSQL's faults as coded errors. */
import { AppError, errorCode, errorMessage } from "../../chain/errors.js";

/** Codes of database faults; `details` has `sqlState`, `constraint` and `table` where known. */
export type SqlErrorCode =
  | "UNIQUE_VIOLATION"
  | "NUMBER_TAKEN"
  | "CHECK_VIOLATION"
  | "FOREIGN_KEY_VIOLATION"
  | "CONFLICT"
  | "DATABASE_UNAVAILABLE"
  | "DATABASE_FULL"
  | "SESSIONS_SHARED"
  | "DATABASE_ENCODING"
  | "DATABASE_COLLATION"
  | "DATABASE_FAULT";

/**
 * A statement that failed. `CONFLICT` is a deadlock, a serialization failure, or a prepared statement
 * whose tables have other columns by now: repeated, the transaction can succeed. `NUMBER_TAKEN` is a
 * duplicate of a number that the database drew itself (`numbering.ts`).
 */
export class SqlError extends AppError<SqlErrorCode> {
  /** Name of the violated constraint; undefined when none was. */
  get constraint(): string | undefined {
    const { constraint } = this.details;
    return typeof constraint === "string" ? constraint : undefined;
  }
}

/**
 * Network faults, by Node's codes; the statement may or may not have run. Among them is what the system
 * itself had no more of as a connection was asked for: files, memory, ports.
 */
const NETWORK_CODES = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
  "EADDRNOTAVAIL",
]);

/** Texts of connection faults without a code: of pg, and of TypeORM after pg lost a connection. */
const CONNECTION_TEXT =
  /connection (terminated|timeout|error)|timeout exceeded|not queryable|runner already released/i;

/**
 * Classes of SQLSTATE that say nothing about the statement: connections (08); memory, connections,
 * space (53); the server stops, starts or ends a session (57P); files that cannot be read or written
 * (58); the server's own faults, damaged pages and indexes among them (XX). A program that ended for
 * them would only meet them again: it waits, and says what it waits for.
 */
const PASSING_CLASS = /^(08...|53...|57P..|58...|XX...)$/;

/** What PostgreSQL says, as `feature_not_supported`, where `SELECT *` would give other columns. */
const STALE_PLAN = "cached plan must not change result type";

/** Whether a prepared statement failed because its tables have changed. */
export function isStalePlan(error: unknown): error is SqlError {
  return error instanceof SqlError && error.message.endsWith(STALE_PLAN);
}

/** PostgreSQL's `undefined_table`. */
const UNDEFINED_TABLE = "42P01";

/** With it `undefined_column` and `undefined_function`. */
const UNDEFINED = new Set([UNDEFINED_TABLE, "42703", "42883"]);

/** Whether a statement failed because a table that it names is not there. */
export function isMissingTable(error: unknown): error is SqlError {
  return error instanceof SqlError && error.details["sqlState"] === UNDEFINED_TABLE;
}

/** Whether a statement failed because the tables are of a release that lacks something that it names. */
export function isOtherTables(error: unknown): error is SqlError {
  return error instanceof SqlError && UNDEFINED.has(String(error.details["sqlState"]));
}

/** PostgreSQL's `read_only_sql_transaction`. */
const READ_ONLY = "25006";

/** Whether a statement failed because it writes where nothing can be written: on a standby, above all. */
export function isReadOnly(error: unknown): error is SqlError {
  return error instanceof SqlError && error.details["sqlState"] === READ_ONLY;
}

/** PostgreSQL's `lock_not_available`: also where a wait for one took too long. */
const LOCK_KEPT = "55P03";

/** Whether a statement failed because somebody else keeps a lock that it needs. */
export function isLockKept(error: unknown): error is SqlError {
  return error instanceof SqlError && error.details["sqlState"] === LOCK_KEPT;
}

/** Wraps any fault of a statement or connection; an `AppError` is given back as it is. */
export function toSqlError(error: unknown): AppError {
  if (error instanceof AppError) {
    return error;
  }
  const driverError = driverErrorOf(error);
  const sqlState = errorCode(driverError);
  const message = errorMessage(driverError);
  const code = classify(sqlState, message);
  return new SqlError(code, `${code}: ${message}`, {
    details: {
      sqlState,
      constraint: textField(driverError, "constraint"),
      table: textField(driverError, "table"),
    },
    retriable: code === "CONFLICT" || code === "DATABASE_UNAVAILABLE" || code === "DATABASE_FULL",
    cause: driverError,
  });
}

/**
 * What refuses a login: the password, the role or the server's rules for it (28); a database that is not
 * there, while another is put in its place (3D000).
 */
const LOGIN_REFUSED = /^(28...|3D000)$/;

/**
 * As `toSqlError`, for a pool that is open: the server has let this process in before, and does so again once
 * a person has done the other half of what he changes (a password and who uses it), or has built the indexes
 * anew of a server that orders texts otherwise. It is waited out.
 */
export function toPoolFault(error: unknown): AppError {
  const fault = toSqlError(error);
  if (!(fault instanceof SqlError)) return fault;
  const isOrder = fault.code === "DATABASE_COLLATION";
  if (!isOrder && !LOGIN_REFUSED.test(String(fault.details["sqlState"]))) return fault;
  const { cause, details } = fault;
  const message = `DATABASE_UNAVAILABLE: ${errorMessage(isOrder ? fault : cause)}`;
  return new SqlError("DATABASE_UNAVAILABLE", message, { details, retriable: true, cause });
}

/**
 * Holds what the server says it has done at a COMMIT: where a statement of the transaction failed, and its
 * work went on all the same, the server takes everything back, and says so without a fault.
 * @throws DATABASE_FAULT
 */
export function assertCommitted(command: string): void {
  if (command === "COMMIT") return;
  const message = `the commit ended in ${command}: a statement of the transaction had failed before`;
  throw new SqlError("DATABASE_FAULT", `DATABASE_FAULT: ${message}`);
}

function classify(sqlState: string, message: string): SqlErrorCode {
  if (message === STALE_PLAN) return "CONFLICT";
  switch (sqlState) {
    case "23505":
      return "UNIQUE_VIOLATION";
    case "23514":
      return "CHECK_VIOLATION";
    case "23503":
      return "FOREIGN_KEY_VIOLATION";
    case "40001":
    case "40P01":
      return "CONFLICT";
    case "53100":
      return "DATABASE_FULL";
    // Idle in transaction; a transaction, statement or lock took too long; nobody knows whether it
    // was done; a standby, or a server that was made read-only.
    case "25P03":
    case "25P04":
    case "57014":
    case LOCK_KEPT:
    case "40003":
    case READ_ONLY:
      return "DATABASE_UNAVAILABLE";
    default:
      return PASSING_CLASS.test(sqlState) ||
        NETWORK_CODES.has(sqlState) ||
        CONNECTION_TEXT.test(message)
        ? "DATABASE_UNAVAILABLE"
        : "DATABASE_FAULT";
  }
}

/** TypeORM wraps the driver's error; a refused dual-stack connection comes as AggregateError. */
function driverErrorOf(error: unknown): unknown {
  const inner = error instanceof Error && "driverError" in error ? error.driverError : error;
  return inner instanceof AggregateError && inner.errors.length > 0 ? inner.errors[0] : inner;
}

function textField(error: unknown, name: string): string | undefined {
  const value: unknown = error instanceof Error ? Reflect.get(error, name) : undefined;
  return typeof value === "string" ? value : undefined;
}
