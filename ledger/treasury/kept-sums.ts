/**
 * Sums of the accounts of the exchange's own coins, kept up to an entry that none is missing before. Whoever
 * wants to know what they hold adds what came since (`asset_units`, migration 43).
 */
import type { Sql } from "../../runtime/sql/sql.js";
import { storedInteger } from "../stored-values.js";

/** Entries of one statement: a moment's work. */
const ENTRIES_AT_ONCE = 50_000;

/**
 * Adds further entries to the sums, as far as all are there for certain (`chain_cursor`).
 * @returns true when there are more
 */
export async function keepSums(sql: Sql, limit = ENTRIES_AT_ONCE): Promise<boolean> {
  const rows = await sql.query<{ added: string }>(
    `WITH reach AS (
       SELECT c.entry_id AS after, least(c.entry_id + $1::bigint, settled.row_key) AS upto
         FROM account_sum_cursor c, chain_cursor settled WHERE settled.kind = 'entry' FOR UPDATE OF c
     ), moved AS (
       SELECT p.asset, side.account, sum(side.units) AS units
         FROM reach
        CROSS JOIN LATERAL (SELECT * FROM posting p
                             WHERE p.journal_id > reach.after AND p.journal_id <= reach.upto
                            OFFSET 0) AS p
        CROSS JOIN LATERAL (VALUES (p.debit, p.amount_units), (p.credit, -p.amount_units))
              AS side (account, units)
        WHERE starts_with(side.account, 'asset:') GROUP BY p.asset, side.account
     ), written AS (
       INSERT INTO account_sum AS s (asset, account, units) SELECT * FROM moved ORDER BY asset, account
       ON CONFLICT (asset, account) DO UPDATE SET units = s.units + excluded.units
     ), reached AS (
       UPDATE account_sum_cursor c SET entry_id = reach.upto FROM reach WHERE reach.upto > reach.after)
     SELECT (upto - after)::text AS added FROM reach`,
    [limit],
  );
  return storedInteger(rows[0]?.added ?? "0") === limit;
}
