/** Faults that a reader of a page is told about. */
import { AppError } from "../chain/errors.js";

/**
 * NOT_FOUND, BAD_REQUEST and TOO_LARGE are the reader's; RATE_LIMITED and BUSY mean later;
 * UNAVAILABLE that a part behind the pages does not answer or does not have it.
 */
export type PageErrorCode =
  | "NOT_FOUND"
  | "BAD_REQUEST"
  | "METHOD_NOT_ALLOWED"
  | "TOO_LARGE"
  | "RATE_LIMITED"
  | "BUSY"
  | "UNAVAILABLE"
  | "PORT_TAKEN"
  | "LISTEN_FAILED";

/** A page that cannot be shown; the message is for logs, pages say it in the reader's language. */
export class PageError extends AppError<PageErrorCode> {}

/** HTTP status of each code. */
export const STATUS_OF: Readonly<Record<PageErrorCode, number>> = {
  NOT_FOUND: 404,
  BAD_REQUEST: 400,
  METHOD_NOT_ALLOWED: 405,
  TOO_LARGE: 413,
  RATE_LIMITED: 429,
  BUSY: 503,
  UNAVAILABLE: 503,
  PORT_TAKEN: 500,
  LISTEN_FAILED: 500,
};

/** What a path does not lead to. */
export function notFound(message: string): PageError {
  return new PageError("NOT_FOUND", message);
}

/** What cannot be read. */
export function badRequest(message: string): PageError {
  return new PageError("BAD_REQUEST", message);
}
