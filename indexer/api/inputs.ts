/** What clients send, parsed once. */
import { type Address, parsePastedAddress } from "../../chain/address.js";
import { isOfCalendar } from "../../chain/encoding/calendar.js";
import { type Hash32, type Height, parseHash32 } from "../../chain/hex.js";
import { IndexerError } from "../errors.js";
import { NO_TOKEN_ID } from "../store/schema.js";
import { bytesOf, type Snapshot } from "./reads.js";

/** A refusal of one field. */
export function invalidField(field: string, message: string): IndexerError {
  return new IndexerError("INVALID_FIELD", `${field}: ${message}`, { details: { field } });
}

/** Hex in any case, with or without 0x, or bech32 of an account or operator. @throws INVALID_FIELD */
export function readAddressText(text: unknown, field = "address"): Address {
  try {
    return parsePastedAddress(typeof text === "string" ? text : "");
  } catch {
    throw invalidField(
      field,
      "an address is 40 hex digits, with or without 0x, or bech32 (addr1...)",
    );
  }
}

/** TOKEN (as no bytes) or a contract. @throws INVALID_FIELD */
export function readAsset(text: unknown): Buffer {
  return text === "TOKEN" ? Buffer.alloc(0) : bytesOf(readAddressText(text, "asset"));
}

/**
 * A contract that counts ids alone (ERC-1155) has no balance as a whole: an empty list of it would
 * look like an account that nothing came to.
 * @throws INVALID_FIELD
 */
export async function assertCounted(
  { sql }: Snapshot,
  schema: string,
  { address, asset }: { readonly address: Buffer; readonly asset: Buffer },
): Promise<void> {
  const held = `SELECT 1 FROM ${schema}.balance WHERE address = $1 AND asset = $2`;
  const [row] = await sql.query<{ ids: boolean }>(
    `SELECT EXISTS (${held}) AND NOT EXISTS (${held} AND token_id = ${NO_TOKEN_ID}) AS ids`,
    [address, asset],
  );
  if (row?.ids !== true) return;
  const message = "it has a balance for each id and none as a whole; see balances and transfers";
  throw invalidField("asset", message);
}

/** A hash with or without prefix, in any case. @throws INVALID_FIELD */
export function readHashText(text: unknown, field = "hash"): Hash32 {
  const digits = typeof text === "string" ? text.replace(/^0x/i, "") : "";
  try {
    return parseHash32(`0x${digits}`);
  } catch {
    throw invalidField(field, "a hash is 64 hex digits, with or without 0x");
  }
}

/** A day, or RFC 3339 with or without seconds. */
const TIME_PATTERN =
  /^(?<day>\d{4}-\d\d-\d\d)([T ](?<minute>\d\d:\d\d)((?<second>:\d\d)(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d))?$/;

/** A moment. @throws INVALID_FIELD for a day or an hour, too, that no calendar or clock has */
export function readTime(text: unknown, field: string): Date {
  const written = typeof text === "string" ? TIME_PATTERN.exec(text) : null;
  const { day = "", minute = "00:00", second = ":00" } = written?.groups ?? {};
  const time = new Date(written?.[0] ?? Number.NaN);
  const isOne = !Number.isNaN(time.getTime()) && isOfCalendar(`${day}T${minute}${second}`);
  if (!isOne) {
    throw invalidField(field, "a moment is RFC 3339, for example 2026-01-31T00:00:00Z");
  }
  return time;
}

/** Largest height that the tables hold. */
const MAX_HEIGHT = 2 ** 31 - 1;

/** A height of the query; undefined where it is absent. */
export function readHeight(value: unknown): Height | undefined {
  return typeof value === "number" ? Math.min(value, MAX_HEIGHT) : undefined;
}

/** An empty answer to a range that was typed the wrong way round would look like the truth. */
export function assertForward(
  first: number | undefined,
  last: number | undefined,
  lastField: string,
): void {
  if (first === undefined || last === undefined || first <= last) return;
  throw invalidField(lastField, "the range ends before it begins");
}

/**
 * Heights that blocks and moments of a query leave, both ends included; empty where none is left.
 * @throws INVALID_FIELD
 */
export async function readRange(
  { sql, progress }: Snapshot,
  query: Readonly<Record<string, unknown>>,
  schema: string,
): Promise<{ readonly from: Height; readonly to: Height }> {
  const [fromBlock, toBlock] = [readHeight(query["fromBlock"]), readHeight(query["toBlock"])];
  assertForward(fromBlock, toBlock, "toBlock");
  const [fromTime, toTime] = ["from", "to"].map((field) =>
    query[field] === undefined ? undefined : readTime(query[field], field),
  );
  assertForward(fromTime?.getTime(), toTime?.getTime(), "to");
  let from = fromBlock ?? 0;
  let to = Math.min(toBlock ?? progress.height, progress.height);
  if (fromTime !== undefined) {
    const [row] = await sql.query<{ height: number }>(
      `SELECT height FROM ${schema}.block WHERE time >= $1 ORDER BY time, height LIMIT 1`,
      [fromTime],
    );
    from = Math.max(from, row?.height ?? progress.height + 1);
  }
  if (toTime !== undefined) {
    const [row] = await sql.query<{ height: number }>(
      `SELECT height FROM ${schema}.block WHERE time < $1 ORDER BY time DESC, height DESC LIMIT 1`,
      [toTime],
    );
    to = Math.min(to, row?.height ?? -1);
  }
  return { from, to };
}

/**
 * The height that `at` names.
 * @throws NOT_INDEXED_YET above the newest indexed block
 */
export function readAt({ progress }: Snapshot, value: unknown): Height | undefined {
  const at = readHeight(value);
  if (at !== undefined) assertIndexed(at, progress.height);
  return at;
}

/** @throws NOT_INDEXED_YET above the newest indexed block */
export function assertIndexed(height: Height, indexedHeight: Height): void {
  if (height <= indexedHeight) return;
  const details = { indexedHeight };
  throw new IndexerError("NOT_INDEXED_YET", `block ${height} is not indexed yet`, { details });
}
