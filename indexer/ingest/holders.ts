/** Who holds a token: accounts, each once, however many ids of it they have. */
import { type IndexSchema, NO_TOKEN_ID } from "../store/schema.js";

/**
 * A query of `asset` and by how much the number of its holders changes. It has to run before the
 * balances are written. Where all that an account has can matter it is looked at: of units with ids, and
 * where one without ids comes or goes, since a contract may log both. One balance more than those that
 * change tells whether there are others: anybody can give an account as many ids as he likes.
 * @param rows a query of `asset`, `address`, `token_id`, and the balance `before` and `after`
 */
export function holdersChange(s: IndexSchema, rows: string): string {
  return `SELECT asset, sum((found - had + has > 0)::integer - (found > 0)::integer) AS change
    FROM (
      SELECT asset, had, has, CASE WHEN is_looked_at THEN (
          SELECT count(*) FROM (
            SELECT 1 FROM ${s}.balance o
            WHERE o.address = r.address AND o.asset = r.asset AND o.asset <> ''::bytea
              AND o.amount > 0 LIMIT r.had + 1) own)
        ELSE had END AS found
      FROM (
        SELECT asset, address, sum((before > 0)::integer) AS had, sum((after > 0)::integer) AS has,
          bool_or(token_id <> ${NO_TOKEN_ID}) OR bool_or((before > 0) <> (after > 0)) AS is_looked_at
        FROM (${rows}) r GROUP BY asset, address) r) h
    GROUP BY asset`;
}
