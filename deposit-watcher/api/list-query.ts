/** Pages of lists in the deposit API: limit, cursor and order as the API file has them. */
import type { ListOrder } from "../../ledger/list-order.js";
import type { HttpRequest } from "../../runtime/http/http-route.js";

/** Rows on a page without `limit`, as in the API file. */
const DEFAULT_LIMIT = 100;

/** Which rows a request asks for. */
export interface ListQuery {
  readonly limit: number;
  /** 0 for the first page. */
  readonly after: number;
  readonly order: ListOrder;
}

/** Reads a validated query. */
export function readListQuery({ limit, after, order }: HttpRequest["query"]): ListQuery {
  return {
    limit: typeof limit === "number" ? limit : DEFAULT_LIMIT,
    after: typeof after === "string" ? Number(after) : 0,
    order: order === "newest" ? "newest" : "oldest",
  };
}

/** Position of the page's last row if rows follow it, else null. */
export function nextCursor(
  rows: readonly { readonly seq: number }[],
  limit: number,
): string | null {
  const last = rows[limit - 1];
  return rows.length > limit && last !== undefined ? String(last.seq) : null;
}
