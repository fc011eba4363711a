/** Fields of request bodies: read once, refused with their names. */
import { errorMessage } from "../../chain/errors.js";
import { MAX_REASON_CHARACTERS, wholeLine } from "../../chain/evm/foreign-text.js";
import { ApiError } from "../errors.js";

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
  const { api: max } = MAX_REASON_CHARACTERS;
  const words = typeof reason === "string" ? wholeLine(reason, max) : undefined;
  if (words === undefined) throw invalidField("reason", `expected 1 to ${max} characters`);
  return words;
}
