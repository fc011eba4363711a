/**
 * Statements: what came, what went, what a balance was before and after, for each block that changed
 * it, each line held against the chain's state at its height.
 */
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest } from "../../runtime/http/http-route.js";
import { isShownAsset, LIVE_SCHEMA as s, NO_TOKEN_ID } from "../store/schema.js";
import { assertCounted, invalidField, readAddressText, readAsset, readRange } from "./inputs.js";
import { type ListKind, listReply, Where } from "./pages.js";
import { type ApiContext, assetName, bytesOf } from "./reads.js";
import type { StateBalances } from "./state-balances.js";

interface LineRow {
  readonly height: number;
  readonly time: Date;
  readonly opening: string;
  readonly credit: string;
  readonly debit: string;
  readonly fee: string;
  readonly amount: string;
  readonly derived: string | null;
  readonly observed: string | null;
}

const LINES: ListKind<LineRow> = {
  name: "statement",
  filters: ["asset", "fromBlock", "toBlock", "from", "to"],
  rows: async ({ snapshot, filters, ceiling, after, limit, params }) => {
    const { from, to } = await readRange(snapshot, filters, s);
    const address = bytesOf(readAddressText(params["address"]));
    const asset = readAsset(filters["asset"] ?? "TOKEN");
    await assertCounted(snapshot, s, { address, asset });
    const where = new Where()
      .and("h.address = ?", address)
      .and("h.asset = ?", asset)
      .and("h.token_id = ?", NO_TOKEN_ID)
      .and("h.height BETWEEN ? AND ?", from, Math.min(to, ceiling));
    where.and(isShownAsset(s, where.bind(asset)));
    if (after !== undefined) where.and("h.height > ?", after[0]);
    return snapshot.sql.query(
      `SELECT h.height, b.time, coalesce((
           SELECT p.amount FROM ${s}.balance_history p
           WHERE p.address = h.address AND p.asset = h.asset AND p.token_id = h.token_id
             AND p.height < h.height ORDER BY p.height DESC LIMIT 1), 0) AS opening,
         h.credit, h.debit, h.fee, h.amount, c.derived, c.observed
       FROM ${s}.balance_history h JOIN ${s}.block b USING (height)
       LEFT JOIN ${s}.correction c USING (address, asset, token_id, height)
       ${where.text()} ORDER BY h.height LIMIT ${limit}`,
      where.parameters,
    );
  },
  item: (row) => row,
  position: ({ height }) => [height],
};

/** A statement: a page of it, or all of it as CSV. @throws INVALID_FIELD, CURSOR_MISMATCH */
export async function statementReply(
  context: ApiContext,
  request: HttpRequest,
  states: StateBalances,
): Promise<HttpReply> {
  const { query, params } = request;
  const pageOf = (asked: HttpRequest) => statementPage(context, asked, states);
  if (query["format"] !== "csv") return pageOf(request);
  if (query["cursor"] !== undefined) throw invalidField("cursor", "a CSV has all lines at once");
  const own = { ...request, query: { ...query, limit: CSV_LINES } };
  const first = await pageOf(own);
  const address = readAddressText(params["address"]);
  // As it was understood: what was sent may have what no header may.
  const asset = assetName(readAsset(query["asset"] ?? "TOKEN"));
  const name = `statement-${address}-${asset}.csv`;
  return {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="${name}"`,
    },
    stream: csvPieces(pageOf, own, first),
  };
}

/** Lines that are read, and held against state, at a time. */
const CSV_LINES = 500;

const CSV_COLUMNS = [
  "height",
  "time",
  "opening",
  "in",
  "out",
  "fee",
  "closing",
  "stateBalance",
  "reconciled",
] as const;

/**
 * Page by page, at the reader's pace; cut off without the end of its last piece where a page cannot be
 * read. No value of a line has a comma or a quote.
 */
async function* csvPieces(
  pageOf: (request: HttpRequest) => Promise<HttpReply>,
  request: HttpRequest,
  first: HttpReply,
): AsyncGenerator<Buffer, void> {
  const corrections = ["derived", "observed"] as const;
  yield Buffer.from(`${[...CSV_COLUMNS, ...corrections].join(",")}\n`);
  for (let page = first; ; ) {
    const { items, next } = linesOf(page);
    const rows = items.map((line) => {
      const [correction] = line.corrections;
      const told = corrections.map((name) => correction?.[name] ?? "");
      return `${[...CSV_COLUMNS.map((name) => line[name] ?? ""), ...told].join(",")}\n`;
    });
    yield Buffer.from(rows.join(""));
    if (next === undefined) return;
    const query = { ...request.query, cursor: next };
    page = await pageOf({ ...request, query });
  }
}

function linesOf({ body }: HttpReply): {
  readonly items: readonly StatementLine[];
  readonly next: string | undefined;
} {
  const page = body as { readonly items: readonly StatementLine[]; readonly next: string | null };
  return { items: page.items, next: page.next ?? undefined };
}

/** The page of a statement. */
async function statementPage(
  context: ApiContext,
  request: HttpRequest,
  stateBalances: StateBalances,
): Promise<HttpReply> {
  let rows: readonly LineRow[] = [];
  let asset: Buffer = Buffer.alloc(0);
  const kind: ListKind<LineRow> = {
    ...LINES,
    rows: async (query) => {
      asset = readAsset(query.filters["asset"] ?? "TOKEN");
      rows = await LINES.rows(query);
      return rows;
    },
  };
  const reply = await listReply(context, kind, request);
  const { body } = reply;
  if (typeof body !== "object" || body === null || !("items" in body)) return reply;
  const shown = rows.slice(0, Array.isArray(body.items) ? body.items.length : 0);
  // Asked after the database's connection is given back: the node may take its time.
  const heights = shown.map(({ height }) => height);
  const address = readAddressText(request.params["address"]);
  const states = await stateBalances.of({ address, asset, heights }, request.signal);
  const items = shown.map((row, index) => lineJson(row, states[index]));
  return { ...reply, body: { ...body, items } };
}

/** As `StatementLine` of the API. */
type StatementLine = ReturnType<typeof lineJson>;

function lineJson(row: LineRow, state: bigint | undefined) {
  const closing = BigInt(row.amount);
  const sum = BigInt(row.opening) + BigInt(row.credit) - BigInt(row.debit) - BigInt(row.fee);
  return {
    height: row.height,
    time: row.time.toISOString(),
    opening: row.opening,
    in: row.credit,
    out: row.debit,
    fee: row.fee,
    closing: row.amount,
    stateBalance: state?.toString() ?? null,
    reconciled: sum === closing && state === closing,
    corrections:
      row.derived === null || row.observed === null
        ? []
        : [{ height: row.height, derived: row.derived, observed: row.observed }],
  };
}
