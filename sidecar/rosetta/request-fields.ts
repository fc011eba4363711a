/** Readers of a request's fields: each gives a typed value or throws the error it is told. */
import { type Hex, parseHex } from "../../chain/hex.js";
import { SidecarError, type SidecarErrorCode } from "./errors.js";

/** An object of a request whose fields are not yet known. */
export type Fields = Readonly<Record<string, unknown>>;

/** Where a value stands and which error it makes when it is wrong. */
export interface Place {
  /** For people, for example "operations[1].amount.value". */
  readonly at: string;
  /** Default INVALID_REQUEST. */
  readonly code?: SidecarErrorCode;
}

/** The error for a wrong value at a place. */
export function fault(place: Place, expected: string): SidecarError {
  return new SidecarError(place.code ?? "INVALID_REQUEST", { field: place.at, expected });
}

/** A place one field deeper. */
export function inside(place: Place, key: string | number): Place {
  const step = typeof key === "number" ? `[${key}]` : place.at === "" ? key : `.${key}`;
  return { ...place, at: `${place.at}${step}` };
}

/** The value as an object with no other than the known keys (any, when none are given). */
export function readFields(value: unknown, place: Place, known?: readonly string[]): Fields {
  if (!isFields(value)) throw fault(place, "an object");
  if (known === undefined) return value;
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) throw fault(inside(place, unknown), "no such field");
  return value;
}

/** The value as whole bytes in hex, 0x in front. */
export function readHex(value: unknown, place: Place): Hex {
  try {
    return parseHex(value);
  } catch {
    throw fault(place, "0x-prefixed hex");
  }
}

/** The value as a list. */
export function readItems(value: unknown, place: Place): readonly unknown[] {
  if (!Array.isArray(value)) throw fault(place, "a list");
  return value;
}

/** The value as text that is not empty. */
export function readText(value: unknown, place: Place): string {
  if (typeof value !== "string" || value === "") throw fault(place, "a string that is not empty");
  return value;
}

/** The value as true or false. */
export function readFlag(value: unknown, place: Place): boolean {
  if (typeof value !== "boolean") throw fault(place, "true or false");
  return value;
}

/** The value as a whole number from 0 to 2^53 - 1. */
export function readIndex(value: unknown, place: Place): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw fault(place, "a whole number from 0 to 2^53 - 1");
  }
  return value;
}

/** Unsigned decimal string without leading zeros, at most `max`. */
export function readUnsigned(value: unknown, place: Place, max: bigint): bigint {
  if (typeof value !== "string" || !/^(0|[1-9][0-9]{0,77})$/.test(value) || BigInt(value) > max) {
    throw fault(place, `a decimal string from 0 to ${max}`);
  }
  return BigInt(value);
}

/** Signed decimal string without leading zeros, its size at most `max`; "-0" is refused. */
export function readSigned(value: unknown, place: Place, max: bigint): bigint {
  if (typeof value !== "string" || !/^(0|-?[1-9][0-9]{0,77})$/.test(value)) {
    throw fault(place, "a decimal string");
  }
  const signed = BigInt(value);
  if (signed > max || signed < -max) throw fault(place, `between -${max} and ${max}`);
  return signed;
}

/** Undefined for an absent value, else what the reader makes of it; null is not absent. */
export function readMaybe<T>(
  value: unknown,
  place: Place,
  reader: (value: unknown, place: Place) => T,
): T | undefined {
  return value === undefined ? undefined : reader(value, place);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
