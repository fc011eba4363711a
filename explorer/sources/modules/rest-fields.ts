/** Readers of values in the SDK's JSON: coins, fractions, times, addresses, pages. All throw BAD_ANSWER. */
import { type Address, parseBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { DECIMAL_ONE, parseUnsigned } from "../../../chain/encoding/decimal.js";
import { BASE_DENOM, type Atoken } from "../../../chain/units.js";
import {
  type AnswerObject,
  readDecimal,
  readList,
  readObject,
  readString,
} from "../../../rpc-client/answer-fields.js";
import { badAnswer } from "../../../rpc-client/errors.js";
import { badRequest } from "../../../web/errors.js";
import type { RestQuery } from "./rest-client.js";

/** A page of a list. */
export interface RestPage<Item> {
  readonly items: readonly Item[];
  /** Place of the next page; undefined at the end. */
  readonly next: string | undefined;
}

/** Base64 of a list's key. */
const PLACE = /^[A-Za-z0-9+/_-]{1,172}={0,2}$/;

/** What asks for a page. @param place of a reader's address @throws BAD_REQUEST */
export function pageQuery(
  limit: number,
  place: string | undefined,
  extra: RestQuery = {},
): RestQuery {
  if (place !== undefined && !PLACE.test(place)) throw badRequest("no place in a list");
  return { ...extra, "pagination.limit": limit, "pagination.key": place };
}

/** A list of an answer with the place of its next page. */
export function readPage<Item>(
  answer: AnswerObject,
  name: string,
  read: (row: AnswerObject) => Item,
): RestPage<Item> {
  const items = rowsOf(answer, name).map(read);
  const { next_key: next } = readObject(answer["pagination"] ?? {}, "pagination");
  return { items, next: typeof next === "string" && next !== "" ? next : undefined };
}

/** A list of objects. */
export function rowsOf(answer: AnswerObject, name: string): readonly AnswerObject[] {
  return readList(answer[name] ?? [], name).map((row) => readObject(row, name));
}

/** Coins of the chain among some, atoken; 0 where there are none. */
export function coinsAtoken(value: unknown): Atoken {
  return readList(value ?? [], "coins").reduce<bigint>((sum, one) => {
    const coin = readObject(one, "coin");
    return coin["denom"] === BASE_DENOM ? sum + readDecimal(coin["amount"], "amount") : sum;
  }, 0n);
}

/** The same of coins with fractions, which are left out: whole atoken are what can be had. */
export function decCoinsAtoken(value: unknown): Atoken {
  return readList(value ?? [], "coins").reduce<bigint>((sum, one) => {
    const coin = readObject(one, "coin");
    if (coin["denom"] !== BASE_DENOM) return sum;
    return sum + readFraction(coin["amount"], "amount") / DECIMAL_ONE;
  }, 0n);
}

/** "0.050000000000000000" as a whole number with 18 decimals. */
export function readFraction(value: unknown, name: string): bigint {
  const fraction = parseUnsigned(readString(value, name), 80);
  if (fraction === undefined) throw badAnswer(`${name} is no fraction`);
  return fraction;
}

/** RFC 3339 to Unix seconds; undefined for none, and for Go's and protobuf's zero. */
export function readTime(value: unknown, name: string): number | undefined {
  if (value === null || value === undefined) return undefined;
  const timeMs = Date.parse(readString(value, name));
  if (Number.isNaN(timeMs)) throw badAnswer(`${name} is no time`);
  return timeMs <= 0 ? undefined : Math.floor(timeMs / 1_000);
}

/** An account in bech32. */
export function readAccount(value: unknown, name: string): Address {
  return addressIn(value, name, undefined);
}

/** A validator's operator in bech32. */
export function readOperator(value: unknown, name: string): Address {
  return addressIn(value, name, VALIDATOR_PREFIX);
}

function addressIn(value: unknown, name: string, prefix: string | undefined): Address {
  try {
    return parseBech32(readString(value, name), prefix);
  } catch (cause) {
    throw badAnswer(`${name} is no address`, cause);
  }
}

/** A text that may be missing. */
export function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}
