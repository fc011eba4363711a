/** Customers whose payouts fail on the chain, as `slot-outcomes.ts` counts them. */
import type { Sql } from "../../runtime/sql/sql.js";

/** Which of these customers have had at least `count` failed payouts since a while ago. */
export async function customersWithFailures(
  sql: Sql,
  options: {
    readonly customerIds: readonly string[];
    readonly count: number;
    readonly windowMs: number;
  },
): Promise<ReadonlySet<string>> {
  const rows = await sql.query<{ id: string }>(
    `SELECT asked.id FROM unnest($1::text[]) AS asked (id)
      WHERE $2::integer <= (SELECT count(*) FROM (
        SELECT 1 FROM payout_failure f
         WHERE f.customer_id = asked.id AND f.at > now() - $3::bigint * interval '1 millisecond'
         LIMIT $2::integer) AS failed)`,
    [[...new Set(options.customerIds)], options.count, options.windowMs],
  );
  return new Set(rows.map(({ id }) => id));
}
