/** Fields of request bodies: read once, refused with their names. */
import { errorMessage } from "../../chain/errors.js";
import { oneLine, shorten } from "../../chain/evm/foreign-text.js";
import { ApiError } from "../errors.js";

/** Longest reason of a cancellation or an approval, in code points, as the API file counts. */
const MAX_REASON_LENGTH = 500;

/** The refusal of one field, 422 INVALID_FIELD. */
export function invalidField(field: string, message: string): ApiError {
  return new ApiError(422, "INVALID_FIELD", `${field}: ${message}`, { field });
}

/** Parses a field. @throws ApiError INVALID_FIELD with the parser's words */
export function parseField<T>(field: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw invalidField(field, errorMessage(cause));
  }
}

/** The `reason` of a body, cleaned. @throws ApiError INVALID_FIELD */
export function readReason(body: unknown): string {
  const reason: unknown = Reflect.get(Object(body), "reason");
  const isReason = typeof reason === "string" && reason.trim() !== "";
  if (!isReason || shorten(reason, MAX_REASON_LENGTH) !== reason) {
    throw invalidField("reason", `expected 1 to ${MAX_REASON_LENGTH} characters`);
  }
  return oneLine(reason, MAX_REASON_LENGTH);
}
