/** Which transactions of deposit addresses the sweeper has signed. */
import type { Sql } from "../../runtime/sql/sql.js";
import { type Payer, payerPlace } from "../watch/flows.js";

/**
 * Those of these transactions that the sweeper signed for the address that they are said to have taken of.
 * @returns their keys, as of `payerPlace`
 */
export async function sweptPlaces(
  sql: Sql,
  payers: readonly Payer[],
): Promise<ReadonlySet<string>> {
  if (payers.length === 0) return new Set();
  const rows = await sql.query<Record<"wallet" | "hash", string>>(
    `SELECT s.address AS wallet, t.hash
       FROM unnest($1::text[], $2::text[]) AS asked (wallet, hash)
       JOIN sweep_attempt t ON t.hash = asked.hash
       JOIN sweep s ON s.id = t.sweep_id AND s.address = asked.wallet`,
    [payers.map(({ wallet }) => wallet), payers.map(({ hash }) => hash)],
  );
  return new Set(rows.map(payerPlace));
}
