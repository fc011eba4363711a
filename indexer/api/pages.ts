/**
 * Lists in pages. A cursor holds the list's name, its filters, the height that the list ends at and
 * the place of the last row, so that new blocks neither move nor double a row, and no client can
 * page through one list with another's parameters. Of the block at that height it has the hash: in an index
 * that was made anew of a chain that has lost it, the rest of the list is that of no list.
 */
import { createHash } from "node:crypto";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest } from "../../runtime/http/http-route.js";
import type { Height } from "../../chain/hex.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import { IndexerError } from "../errors.js";
import type { Asker } from "./index-reads.js";
import { type ApiContext, atOneMoment, blockHashAt, metaOf, type Snapshot } from "./reads.js";

/** Parameters of a list as they were on its first page. */
export type Filters = Readonly<Record<string, string | number>>;

/** Place of a row: the values that the list is sorted by. */
export type Position = readonly (string | number)[];

/** What a list reads. */
export interface PageQuery {
  readonly snapshot: Snapshot;
  readonly filters: Filters;
  /** Only rows of blocks up to this height. */
  readonly ceiling: Height;
  /** Behind this one; undefined on the first page. */
  readonly after: Position | undefined;
  /** Rows to read, for the text of the statement: more than the page has. */
  readonly limit: number;
  readonly params: Readonly<Record<string, string>>;
}

/** One kind of list. */
export interface ListKind<Row> {
  readonly name: string;
  /** Query parameters that choose and sort rows. */
  readonly filters: readonly string[];
  readonly rows: (query: PageQuery) => Promise<readonly Row[]>;
  readonly item: (row: Row, snapshot: Snapshot) => unknown;
  readonly position: (row: Row) => Position;
  /**
   * Whether a row is none of the list, but the place that a look ended at which found less than a page. Only
   * lists that look at so many rows at a time have it.
   */
  readonly isEndOfLook?: (row: Row) => boolean;
}

/** Version of the cursor's form. */
const CURSOR_VERSION = 1;

interface Cursor {
  readonly list: string;
  readonly filters: Filters;
  readonly ceiling: Height;
  readonly after: Position;
  /** Of the block at the ceiling; undefined in cursors of former releases. */
  readonly ceilingHash: string | undefined;
}

/** The page that a request asks for. @throws CURSOR_MISMATCH */
export function listReply<Row>(
  context: ApiContext,
  kind: ListKind<Row>,
  request: Pick<HttpRequest, "params" | "query"> & Asker,
): Promise<HttpReply> {
  return atOneMoment(context, request, async (snapshot) => {
    const { query, params } = request;
    const list = `${kind.name} ${digestOf(params)}`;
    const cursor = query["cursor"] === undefined ? undefined : decodeCursor(query["cursor"], list);
    const filters = filtersOf(kind, query, cursor);
    const ceiling = cursor?.ceiling ?? snapshot.progress.height;
    const ceilingHash = await hashAt(snapshot, ceiling);
    if (cursor !== undefined) assertThere(cursor, ceilingHash);
    const limit = Number(query["limit"] ?? 100);
    const wanted = {
      snapshot,
      filters,
      ceiling,
      after: cursor?.after,
      params,
      limit: toRead(limit),
    };
    const rows = await kind.rows(wanted).catch((error: unknown) => {
      // Only a cursor that was made up holds values that the database cannot take.
      throw cursor !== undefined && isDataFault(error) ? notOfThisList() : error;
    });
    const isEndOfLook = (row: Row) => kind.isEndOfLook?.(row) === true;
    const found = rows.filter((row) => !isEndOfLook(row));
    const shown = found.slice(0, limit);
    const last = found.length > limit ? shown.at(-1) : rows.find(isEndOfLook);
    const next =
      last === undefined
        ? null
        : encodeCursor({ list, filters, ceiling, ceilingHash, after: kind.position(last) });
    const items = shown.map((row) => kind.item(row, snapshot));
    return { body: { meta: metaOf(snapshot), items, next } };
  });
}

/** Rows that are read at a time; the longest page that the API gives has 1,000. */
const READS = [26, 101];
const MOST_READ = 1_001;

/**
 * One row more than a page has tells whether there is another. The figure stands in the statement's text:
 * without it PostgreSQL would plan for a tenth of the table. There are few, as it keeps a plan for each.
 */
function toRead(limit: number): number {
  return READS.find((rows) => rows > limit) ?? MOST_READ;
}

function filtersOf(
  { filters }: Pick<ListKind<never>, "filters">,
  query: Readonly<Record<string, unknown>>,
  cursor: Cursor | undefined,
): Filters {
  const given = Object.fromEntries(
    filters.flatMap((name) => {
      const asked = query[name];
      // "Up to the end", however it is written: a cursor holds no number that JavaScript rounds.
      const value = typeof asked === "number" ? Math.min(asked, Number.MAX_SAFE_INTEGER) : asked;
      return typeof value === "string" || typeof value === "number" ? [[name, value]] : [];
    }),
  );
  if (cursor === undefined) return given;
  for (const [name, value] of Object.entries(given)) {
    if (cursor.filters[name] === value) continue;
    const message = `the cursor is of a list with another ${name}: begin anew without a cursor`;
    throw new IndexerError("CURSOR_MISMATCH", message, { details: { field: name } });
  }
  return cursor.filters;
}

/** Most lists end at the newest block, whose hash is known. */
async function hashAt({ sql, progress }: Snapshot, height: Height): Promise<string | undefined> {
  return height === progress.height ? progress.hash : blockHashAt(sql, height);
}

/** @throws CURSOR_MISMATCH where the list ended at a block that the index does not have */
function assertThere({ ceiling, ceilingHash: wanted }: Cursor, found: string | undefined): void {
  if (found !== undefined && (wanted === undefined || wanted === found)) return;
  const message =
    `the list ended at block ${ceiling}${wanted === undefined ? "" : ` (${wanted})`}, which is not in the ` +
    "index: it was made anew of a chain that has lost it, or this one is behind; begin anew without a cursor";
  throw new IndexerError("CURSOR_MISMATCH", message, { details: { field: "cursor" } });
}

/** With the longest of all filters it has some 850 characters; the API file allows more. */
function encodeCursor({ list, filters, ceiling, ceilingHash, after }: Cursor): string {
  const hash = ceilingHash === undefined ? [] : [ceilingHash];
  const text = JSON.stringify([CURSOR_VERSION, list, filters, ceiling, after, ...hash]);
  return Buffer.from(text).toString("base64url");
}

function notOfThisList(): IndexerError {
  const message = "the cursor is not one of this list: begin anew without a cursor";
  return new IndexerError("CURSOR_MISMATCH", message, { details: { field: "cursor" } });
}

/** Class 22 of SQLSTATE: a value that is no number, or too large, or no text. */
function isDataFault(error: unknown): boolean {
  return error instanceof SqlError && String(error.details["sqlState"]).startsWith("22");
}

/** @throws CURSOR_MISMATCH for a cursor that was not made by this list */
function decodeCursor(text: unknown, list: string): Cursor {
  const refused = notOfThisList();
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(String(text), "base64url").toString("utf8"));
  } catch {
    throw refused;
  }
  if (!Array.isArray(value) || (value.length !== 5 && value.length !== 6)) throw refused;
  const [version, name, filters, ceiling, after, ceilingHash]: unknown[] = value;
  const isPlain = (one: unknown): one is string | number =>
    typeof one === "string" || (typeof one === "number" && Number.isSafeInteger(one));
  if (version !== CURSOR_VERSION || name !== list) throw refused;
  if (typeof ceiling !== "number" || !Number.isSafeInteger(ceiling) || ceiling < 0) throw refused;
  if (!Array.isArray(after) || !after.every(isPlain)) throw refused;
  if (ceilingHash !== undefined && !isHash(ceilingHash)) throw refused;
  if (typeof filters !== "object" || filters === null || Array.isArray(filters)) throw refused;
  const known: [string, string | number][] = [];
  for (const [key, one] of Object.entries(filters)) {
    if (!isPlain(one)) throw refused;
    known.push([key, one]);
  }
  return { list, filters: Object.fromEntries(known), ceiling, after, ceilingHash };
}

function isHash(value: unknown): value is string {
  return typeof value === "string" && /^0x[0-9a-f]{64}$/.test(value);
}

function digestOf(params: Readonly<Record<string, string>>): string {
  return createHash("sha256").update(JSON.stringify(params)).digest("base64url").slice(0, 16);
}

/** The sign and direction of a sort: what follows in it, and its name in SQL. */
export function directionOf(filters: Filters): { readonly sign: "<" | ">"; readonly word: string } {
  return filters["order"] === "asc" ? { sign: ">", word: "ASC" } : { sign: "<", word: "DESC" };
}

/** Collects conditions and their parameters for one statement. */
export class Where {
  readonly parameters: unknown[] = [];
  private readonly conditions: string[] = [];

  /** Adds a condition; each `?` stands for one of the values. */
  and(condition: string, ...values: readonly unknown[]): this {
    let next = 0;
    const text = condition.replace(/\?/g, () => this.bind(values[next++]));
    this.conditions.push(text);
    return this;
  }

  /** A placeholder for a value. */
  bind(value: unknown): string {
    return `$${this.parameters.push(value)}`;
  }

  /** The clause; always there. */
  text(): string {
    return this.conditions.length === 0 ? "WHERE true" : `WHERE ${this.conditions.join(" AND ")}`;
  }
}
