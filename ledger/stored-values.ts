/** Column text to typed values: NUMERIC and BIGINT arrive as strings and are checked once here. */
import { type Address, parseAddress } from "../chain/address.js";
import { type Hash32, type Height, parseHash32 } from "../chain/hex.js";
import type { Atoken } from "../chain/units.js";
import { LedgerError } from "./errors.js";

/** NUMERIC without fraction or BIGINT text to bigint, any sign: amounts and sums. Throws CORRUPT_ROW. */
export function storedAtoken(value: unknown): Atoken {
  if (typeof value !== "string" || !/^-?[0-9]{1,100}$/.test(value)) {
    throw corrupt("an integer amount", value);
  }
  return BigInt(value);
}

/** BIGINT or INTEGER to a safe integer (heights, indices, sequence numbers). Throws CORRUPT_ROW. */
export function storedInteger(value: unknown): number {
  const number = typeof value === "number" ? value : Number(storedAtoken(value));
  if (!Number.isSafeInteger(number)) throw corrupt("a safe integer", value);
  return number;
}

/** As `storedInteger`, named for what most columns hold. Throws CORRUPT_ROW. */
export function storedHeight(value: unknown): Height {
  return storedInteger(value);
}

/**
 * SQL: a time as text, microseconds in UTC whatever the session's settings are. Links of the chain of hashes
 * and homes hold it: it is never written otherwise.
 */
export function timeTextSql(time: string): string {
  return `to_char(${time} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}

/** Text column to an address. Throws CORRUPT_ROW. */
export function storedAddress(value: unknown): Address {
  try {
    return parseAddress(value);
  } catch (cause) {
    throw corrupt("an address", value, cause);
  }
}

/** Text column to a hash. Throws CORRUPT_ROW. */
export function storedHash(value: unknown): Hash32 {
  try {
    return parseHash32(value);
  } catch (cause) {
    throw corrupt("a hash", value, cause);
  }
}

/** TIMESTAMPTZ to RFC 3339 in UTC with milliseconds. Throws CORRUPT_ROW. */
export function storedTime(value: unknown): string {
  const date = value instanceof Date ? value : new Date(String(value));
  if (Number.isNaN(date.getTime())) throw corrupt("a time", value);
  return date.toISOString();
}

function corrupt(expected: string, value: unknown, cause?: unknown): LedgerError {
  return new LedgerError("CORRUPT_ROW", `the ledger holds a value that is not ${expected}`, {
    details: { value: String(value).slice(0, 100) },
    cause,
  });
}
