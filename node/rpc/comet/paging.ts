/** Pages and heights as CometBFT checks them. */
import type { Height } from "../../../chain/hex.js";
import type { Arguments } from "./arguments.js";
import { refused } from "./errors.js";

const DEFAULT_PER_PAGE = 30;
const MAX_PER_PAGE = 100;

/** What `per_page` and `limit` come to. */
export function perPage(values: Arguments, name: string): number {
  const wanted = values.integer(name) ?? DEFAULT_PER_PAGE;
  return wanted < 1 ? DEFAULT_PER_PAGE : Math.min(wanted, MAX_PER_PAGE);
}

/** The page of a list that `page` and `per_page` name. Throws INTERNAL outside of it. */
export function pageOf<Item>(values: Arguments, items: readonly Item[]): readonly Item[] {
  const size = perPage(values, "per_page");
  const pages = Math.max(1, Math.ceil(items.length / size));
  const page = values.integer("page") ?? 1;
  if (page < 1 || page > pages) {
    throw refused(`page should be within [1, ${pages}] range, given ${page}`);
  }
  return items.slice((page - 1) * size, page * size);
}

/** Whether `order_by` asks for falling order. Throws INTERNAL for another word. */
export function isDescending(values: Arguments, defaultOrder: "asc" | "desc"): boolean {
  const order = values.text("order_by") || defaultOrder;
  if (order === "asc" || order === "desc") return order === "desc";
  throw refused("expected order_by to be either `asc` or `desc` or empty");
}

/** The height asked for, the latest by default. Throws INTERNAL outside of the range. */
export function heightOf(values: Arguments, latest: Height, base: Height): Height {
  const height = values.integer("height");
  if (height === undefined) return latest;
  if (height <= 0) throw refused(`height must be greater than 0, but got ${height}`);
  if (height > latest) {
    throw refused(
      `height ${height} must be less than or equal to the current blockchain height ${latest}`,
    );
  }
  if (height < base) {
    throw refused(`height ${height} is not available, lowest height is ${base}`);
  }
  return height;
}
