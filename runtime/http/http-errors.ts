/** Faults that the HTTP server itself finds, before or after a handler runs. */
import { AppError, errorCode, errorMessage } from "../../chain/errors.js";

/**
 * INVALID_REQUEST: the client's fault (details: `status`, `errors`); INVALID_RESPONSE: a handler
 * broke its API description; PORT_TAKEN and LISTEN_FAILED: the server could not start.
 */
export type HttpErrorCode = "INVALID_REQUEST" | "INVALID_RESPONSE" | "PORT_TAKEN" | "LISTEN_FAILED";

/** One thing that is wrong with a request. */
export interface RequestFault {
  /** JSON pointer such as "/body/amountAtoken", or the URL's path. */
  readonly path: string;
  readonly message: string;
  /** The rule that was broken, for example "pattern.openapi.validation"; "" where none is named. */
  readonly errorCode: string;
}

/** A fault of a request, of a response against its description, or of listening. */
export class HttpError extends AppError<HttpErrorCode> {
  /** HTTP status that fits: 400, 401, 403, 404, 405, 413, 415, 429 or 500. */
  get status(): number {
    const { status } = this.details;
    return typeof status === "number" ? status : 500;
  }

  /** What is wrong, one entry for each fault found. */
  get errors(): readonly RequestFault[] {
    const { errors } = this.details;
    return Array.isArray(errors) ? errors : [];
  }
}

/** A fault of the client with its status; with a `rule` where one value alone cannot be taken. */
export function requestError(
  status: number,
  message: string,
  options: {
    readonly path?: string;
    readonly rule?: string;
    readonly cause?: unknown;
    readonly details?: Readonly<Record<string, unknown>>;
  } = {},
): HttpError {
  const { path = "", rule = "" } = options;
  const errors: readonly RequestFault[] = [{ path, message, errorCode: rule }];
  return new HttpError("INVALID_REQUEST", message, {
    details: { ...options.details, status, errors },
    cause: options.cause,
  });
}

/** Fault of a connection that did not send a request of HTTP: too long a head, or not one at all. */
export function unreadableRequest(error: unknown): HttpError {
  return errorCode(error) === "HPE_HEADER_OVERFLOW"
    ? requestError(413, "the request's head is too long", { cause: error })
    : requestError(400, "the request cannot be read", { cause: error });
}

/** Errors of the router and the validator as `HttpError`; everything else as it is. */
export function normaliseHttpError(error: unknown): unknown {
  if (error instanceof AppError || !(error instanceof Error)) {
    return error;
  }
  const status: unknown = Reflect.get(error, "status");
  if (typeof status !== "number") {
    return error;
  }
  // The validator names the type it was sent, "undefined" without one, and not the one it wants.
  if (status === 415) {
    const message = "bodies are taken as Content-Type: application/json";
    return requestError(status, message, { path: "/headers/content-type", cause: error });
  }
  const errors = readFaults(Reflect.get(error, "errors"));
  const code = status >= 500 ? "INVALID_RESPONSE" : "INVALID_REQUEST";
  return new HttpError(code, errorMessage(error), { details: { status, errors }, cause: error });
}

function readFaults(raw: unknown): readonly RequestFault[] {
  if (!Array.isArray(raw)) {
    return [];
  }
  return raw.map((entry: unknown) => ({
    path: textOf(entry, "path"),
    message: textOf(entry, "message"),
    errorCode: textOf(entry, "errorCode"),
  }));
}

function textOf(entry: unknown, key: string): string {
  const value: unknown =
    typeof entry === "object" && entry !== null ? Reflect.get(entry, key) : undefined;
  return typeof value === "string" ? value : "";
}

/** Stable codes of what the server itself refuses, by status: the exchange's APIs share them. */
const CODE_OF_STATUS: Readonly<Record<number, string>> = {
  400: "UNREADABLE",
  401: "UNAUTHORIZED",
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  405: "METHOD_NOT_ALLOWED",
  413: "TOO_LARGE",
  415: "UNSUPPORTED_MEDIA_TYPE",
  422: "INVALID_FIELD",
  429: "RATE_LIMITED",
};

/**
 * Status of a refusal by the exchange's APIs. The server says 400 for everything; a request whose
 * syntax is right and whose fields break the API's rules was understood, so it is 422. No body at all
 * is nothing to understand.
 */
export function understoodStatus(error: HttpError): number {
  const isUnderstood = error.errors.some(
    ({ errorCode: rule, path, message }) =>
      (rule !== "" || path.startsWith("/query/")) &&
      !(path === "/body" && message.includes("required property 'body'")),
  );
  return error.status === 400 && isUnderstood ? 422 : error.status;
}

/**
 * Status, code and details of a refusal as the exchange's APIs show it; `status` where another fits.
 * A refusal that has a code of its own carries it in its details.
 */
export function refusalOf(
  error: HttpError,
  status: number = error.status,
): {
  readonly status: number;
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;
} {
  const { status: _status, errors: _errors, code: own, ...details } = error.details;
  const errors = error.errors.map(({ path, message }) => ({ path, message }));
  const code = typeof own === "string" ? own : (CODE_OF_STATUS[status] ?? "UNREADABLE");
  return { status, code, details: { errors, ...details } };
}
