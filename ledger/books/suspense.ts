/** What lies in suspense: coins whose owner is not known, until a person says whose they are. */
import type { Sql } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { SUSPENSE } from "./accounts.js";

/** SQL: units of an asset in suspense. @param asset an expression */
export function inSuspense(asset: string): string {
  const sum = (side: "credit" | "debit") =>
    `coalesce((SELECT sum(amount_units) FROM posting p
                WHERE p.${side} = '${SUSPENSE}' AND p.asset = ${asset}), 0)`;
  return `(${sum("credit")} - ${sum("debit")})`;
}

/**
 * Units of an asset in suspense, for who is to take some: until the transaction ends nobody else takes any.
 * Below zero where more was given than came.
 */
export async function lockInSuspense(tx: Sql, asset: string): Promise<bigint> {
  await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended('suspense', 8082))`);
  const [row] = await tx.query<{ units: string }>(`SELECT ${inSuspense("$1")}::text AS units`, [
    asset,
  ]);
  return BigInt(row?.units ?? "0");
}

/**
 * Before a person's decision takes units out of suspense: the same coins may have been given by a decision
 * of another kind, which has no key in common with it.
 * @throws INVALID_DECISION where less lies there
 */
export async function assertInSuspense(tx: Sql, asset: string, wantedUnits: bigint): Promise<void> {
  const heldUnits = await lockInSuspense(tx, asset);
  if (wantedUnits <= heldUnits) return;
  throw new LedgerError(
    "INVALID_DECISION",
    `${SUSPENSE} holds ${heldUnits} units of ${asset}, and ${wantedUnits} are to be taken: ` +
      "another decision may have given them (ledger decisions)",
  );
}
