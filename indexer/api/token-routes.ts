/** Tokens: what contracts say of themselves, who holds them, what they moved. */
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { IndexerError } from "../errors.js";
import { isShownAsset, LIVE_SCHEMA as s, NO_TOKEN_ID, UNPROVEN } from "../store/schema.js";
import { readAddressText, readAt, readRange } from "./inputs.js";
import { directionOf, type ListKind, listReply, type PageQuery, Where } from "./pages.js";
import { type ApiContext, atOneMoment, bytesOf, hexOf, metaOf } from "./reads.js";
import { TRANSFER_COLUMNS, TRANSFER_JOINS, transferJson, type TransferRow } from "./row-json.js";

interface TokenRow {
  readonly address: Buffer;
  readonly standard: string;
  readonly name: string | null;
  readonly symbol: string | null;
  readonly decimals: number | null;
  readonly total_supply: string | null;
  readonly metadata_height: number | null;
  readonly is_consistent: boolean;
  readonly first_seen: number;
  readonly transfers: string;
  readonly holders: string;
  /** The last one that a search has looked at, found or not. */
  readonly is_end?: boolean;
}

function tokenJson(row: TokenRow) {
  return {
    address: hexOf(row.address),
    standard: row.standard,
    name: row.name,
    symbol: row.symbol,
    decimals: row.decimals,
    totalSupply: row.total_supply,
    metadataHeight: row.metadata_height,
    isConsistent: row.is_consistent,
    firstSeen: row.first_seen,
    transfers: Number(row.transfers),
    holders: Number(row.holders),
  };
}

/** Sorts of the list of tokens, by the API's names. */
const SORT_COLUMNS: Readonly<Record<string, "transfers" | "holders" | "first_seen">> = {
  transfers: "transfers",
  holders: "holders",
  firstSeen: "first_seen",
};

/**
 * Tokens that one page of a search goes through: anybody can make as many as he pays for, and no index that
 * every server has finds parts of texts.
 */
export const TOKENS_SEARCHED = 10_000;

/** Characters that LIKE reads as patterns. */
const LIKE_PATTERN = /[\\%_]/g;

/** As a value of the text: of any standard the planner would believe that hardly a token has another. */
const IS_TOKEN = `standard <> '${UNPROVEN}'`;

/** A pattern of all that have a text in them. */
function partOf(text: string): string {
  return `%${text.replace(LIKE_PATTERN, "\\$&")}%`;
}

/** Those of the next tokens with a part in name or symbol; behind them the last one that was looked at. */
function searched(
  all: string,
  order: string,
  { limit, part }: { readonly limit: number; readonly part: string },
): string {
  return `WITH looked AS MATERIALIZED (${all} LIMIT ${TOKENS_SEARCHED})
    (SELECT *, false AS is_end FROM looked
     WHERE ${IS_TOKEN} AND (name ILIKE ${part} OR symbol ILIKE ${part}) ${order} LIMIT ${limit})
    UNION ALL
    (SELECT *, true AS is_end FROM looked ${order} OFFSET ${TOKENS_SEARCHED - 1} LIMIT 1)
    ${order}, is_end`;
}

function tokens(sort: string): ListKind<TokenRow> {
  const column = SORT_COLUMNS[sort] ?? "transfers";
  return {
    name: "tokens",
    filters: ["sort", "search"],
    rows: ({ snapshot, filters, ceiling, after, limit }) => {
      const where = new Where().and("first_seen <= ?", ceiling);
      if (after !== undefined) {
        where.and(`(${column}, address) < (?::bigint, decode(?, 'hex'))`, ...after);
      }
      const all = `SELECT * FROM ${s}.token ${where.text()}`;
      const order = `ORDER BY ${column} DESC, address DESC`;
      const { search } = filters;
      const text =
        search === undefined
          ? `${all} AND ${IS_TOKEN} ${order} LIMIT ${limit}`
          : searched(`${all} ${order}`, order, { limit, part: where.bind(partOf(String(search))) });
      return snapshot.sql.query(text, where.parameters);
    },
    isEndOfLook: ({ is_end }) => is_end === true,
    item: tokenJson,
    position: (row) => [String(row[column]), row.address.toString("hex")],
  };
}

interface HolderRow {
  readonly address: Buffer;
  readonly token_id: string;
  readonly amount: string;
  readonly method: string;
  readonly verified_at: number | null;
}

const tokenOf = ({ params }: Pick<PageQuery, "params">) =>
  bytesOf(readAddressText(params["token"], "token"));

const HOLDERS: ListKind<HolderRow> = {
  name: "holders",
  filters: ["at"],
  rows: (query) => {
    const { snapshot, filters, ceiling, after, limit } = query;
    const at = readAt(snapshot, filters["at"]) ?? ceiling;
    const where = new Where();
    const token = where.bind(tokenOf(query));
    const height = where.bind(at);
    where.and(isShownAsset(s, token)).and("p.amount > 0");
    if (after !== undefined) {
      where.and(
        "(p.amount, p.address, p.token_id) < (?::numeric, decode(?, 'hex'), ?::numeric)",
        ...after,
      );
    }
    const order = "ORDER BY p.amount DESC, p.address DESC, p.token_id DESC";
    // Balances as they are, but for those that changed since: these as they were. Which ones these are the
    // balances say themselves; the history of a few holders can be as long as the chain.
    return snapshot.sql.query(
      `SELECT * FROM (
         (SELECT p.address, p.token_id, p.amount, p.method, p.verified_at FROM ${s}.balance p
          ${where.text()} AND p.asset = ${token} AND p.asset <> ''::bytea AND p.updated_at <= ${height}
          ${order} LIMIT ${limit})
         UNION ALL
         (SELECT p.address, p.token_id, p.amount, c.method, NULL AS verified_at
          FROM (SELECT address, token_id, method FROM ${s}.balance
                WHERE asset = ${token} AND asset <> ''::bytea AND updated_at > ${height}) c
          CROSS JOIN LATERAL (
            SELECT h.address, h.token_id, h.amount FROM ${s}.balance_history h
            WHERE h.address = c.address AND h.asset = ${token} AND h.token_id = c.token_id
              AND h.height <= ${height} ORDER BY h.height DESC LIMIT 1) p
          ${where.text()} ${order} LIMIT ${limit})) p
       ${order} LIMIT ${limit}`,
      where.parameters,
    );
  },
  item: (row) => ({
    address: hexOf(row.address),
    tokenId: BigInt(row.token_id) === NO_TOKEN_ID ? null : row.token_id,
    amount: row.amount,
    method: row.method,
    verifiedAtHeight: row.verified_at,
  }),
  position: ({ amount, address, token_id }) => [amount, address.toString("hex"), token_id],
};

const TRANSFERS: ListKind<TransferRow> = {
  name: "token transfers",
  filters: ["order", "fromBlock", "toBlock", "from", "to"],
  rows: async (query) => {
    const { snapshot, filters, ceiling, after, limit } = query;
    const { sign, word } = directionOf(filters);
    const { from, to } = await readRange(snapshot, filters, s);
    const where = new Where()
      .and("f.asset = ? AND f.asset <> ''::bytea", tokenOf(query))
      .and("f.height BETWEEN ? AND ?", from, Math.min(to, ceiling));
    if (after !== undefined) where.and(`(f.height, f.tx_index, f.seq) ${sign} (?, ?, ?)`, ...after);
    return snapshot.sql.query(
      `SELECT ${TRANSFER_COLUMNS} FROM ${s}.transfer f ${TRANSFER_JOINS} ${where.text()}
       ORDER BY f.height ${word}, f.tx_index ${word}, f.seq ${word} LIMIT ${limit}`,
      where.parameters,
    );
  },
  item: transferJson,
  position: ({ height, tx_index, seq }) => [height, tx_index, seq],
};

/** Handlers of `/v1/tokens`. */
export function tokenRoutes(context: ApiContext): readonly HttpRoute[] {
  return [
    {
      method: "get",
      path: "/v1/tokens",
      handler: (request) => {
        const { sort: given, cursor } = request.query;
        const sort = typeof given === "string" ? given : sortOfCursor(cursor);
        return listReply(context, tokens(sort), request);
      },
    },
    {
      method: "get",
      path: "/v1/tokens/{token}",
      handler: (request) =>
        atOneMoment(context, request, async (snapshot) => {
          const address = readAddressText(request.params["token"], "token");
          const [row] = await snapshot.sql.query<TokenRow>(
            `SELECT * FROM ${s}.token WHERE address = $1 AND standard <> $2`,
            [bytesOf(address), UNPROVEN],
          );
          if (row !== undefined) return { body: { meta: metaOf(snapshot), token: tokenJson(row) } };
          const details = { indexedHeight: snapshot.progress.height };
          const message = `${address} is no known token up to block ${details.indexedHeight}`;
          throw new IndexerError("NOT_FOUND", message, { details });
        }),
    },
    {
      method: "get",
      path: "/v1/tokens/{token}/holders",
      handler: (request) => listReply(context, HOLDERS, request),
    },
    {
      method: "get",
      path: "/v1/tokens/{token}/transfers",
      handler: (request) => listReply(context, TRANSFERS, request),
    },
  ];
}

/** The sort that a cursor carries, so that it need not be sent again; the cursor is judged later. */
function sortOfCursor(cursor: unknown): string {
  const text = Buffer.from(typeof cursor === "string" ? cursor : "", "base64url").toString("utf8");
  return /"sort":"(transfers|holders|firstSeen)"/.exec(text)?.[1] ?? "transfers";
}
