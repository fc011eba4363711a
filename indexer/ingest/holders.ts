/** Who holds a token: accounts, each once, however many ids of it they have. */
import { type IndexSchema, NO_TOKEN_ID } from "../store/schema.js";

/**
 * A query of `asset` and by how much the number of its holders changes. It has to run before the
 * balances are written. Where all that an account has can matter it is counted: of units with ids, and
 * where one without ids comes or goes, since a contract may log both.
 * @param rows a query of `asset`, `address`, `token_id`, and the balance `before` and `after`
 */
export function holdersChange(s: IndexSchema, rows: string): string {
  return `SELECT asset, sum((total - had + has > 0)::integer - (total > 0)::integer) AS change
    FROM (
      SELECT asset, address, sum((before > 0)::integer) AS had, sum((after > 0)::integer) AS has,
        CASE WHEN bool_or(token_id <> ${NO_TOKEN_ID}) OR bool_or((before > 0) <> (after > 0)) THEN (
          SELECT count(*) FROM ${s}.balance o
          WHERE o.address = r.address AND o.asset = r.asset AND o.amount > 0)
        ELSE sum((before > 0)::integer) END AS total
      FROM (${rows}) r GROUP BY asset, address) h
    GROUP BY asset`;
}
