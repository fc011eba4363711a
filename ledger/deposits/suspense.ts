/** What lies in suspense: coins whose owner is not known, until a person says whose they are. */
import type { Sql } from "../../runtime/sql/sql.js";
import { isSamePayment, placeAmongSame } from "./same-payment.js";
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import { LedgerError } from "../errors.js";
import { SUSPENSE } from "../journal/accounts.js";
import { lossSuffix } from "../journal/entry-keys.js";

/**
 * Key of the entry of what a token raised one of our addresses by in a block, beyond all that it said.
 * @param rewinds how often the chain came back without blocks before that was seen
 */
export function surplusKey(
  place: { readonly height: Height; readonly asset: string; readonly address: Address },
  rewinds: number,
): string {
  const { height, asset, address } = place;
  return `surplus:${height}:${asset}:${address}${lossSuffix(rewinds)}`;
}

/** SQL: units of an asset in suspense. @param asset an expression */
export function inSuspense(asset: string): string {
  const sum = (side: "credit" | "debit") =>
    `coalesce((SELECT sum(amount_units) FROM posting p
                WHERE p.${side} = '${SUSPENSE}' AND p.asset = ${asset}), 0)`;
  return `(${sum("credit")} - ${sum("debit")})`;
}

/** Decisions `t` about a deposit `d`; see `TAKEN_BY_NAME`. */
const TAKINGS = `operator_decision t JOIN deposit n ON n.id = t.terms->>'depositId'
   WHERE t.kind = 'adjustment' AND t.status = 'done'
     AND (n.id = d.id
          OR n.status = 'reversed' AND n.rewind < d.rewind AND ${isSamePayment("n", "d")}
             AND ${placeAmongSame("n")} = ${placeAmongSame("d")})`;

/**
 * SQL: units of a deposit `d` in suspense that persons have taken by its name, for whomever; of others
 * nobody has said whose coins they were. What was taken before a chain lost the payment counts, too, when
 * it is mined again under another name; the payment may bring less than that then.
 */
export const TAKEN_BY_NAME = `coalesce((
  SELECT sum((t.terms->>'amountAtoken')::numeric) FROM ${TAKINGS}), 0)`;

/** SQL: keys of the entries by which that was taken. @param id an expression */
export function keysOfTakings(id: string): string {
  return `SELECT taking.key FROM deposit d
    CROSS JOIN LATERAL (SELECT 'adjustment:' || t.key AS key FROM ${TAKINGS}) AS taking
    WHERE d.id = ${id}`;
}

/** See `TAKEN_BY_NAME`. */
export async function takenByName(sql: Sql, depositId: string): Promise<bigint> {
  return (await takenByNames(sql, [depositId])).get(depositId) ?? 0n;
}

/** See `TAKEN_BY_NAME`; of those deposits of which something was taken. */
export async function takenByNames(
  sql: Sql,
  depositIds: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await sql.query<{ id: string; units: string }>(
    `SELECT id, units::text FROM (SELECT d.id, ${TAKEN_BY_NAME} AS units FROM deposit d
                                   WHERE d.id = ANY ($1::text[])) AS taken
      WHERE units > 0`,
    [depositIds],
  );
  return new Map(rows.map(({ id, units }) => [id, BigInt(units)]));
}

/**
 * Until the transaction ends nobody else decides whose the deposits in suspense are, or changes what is left
 * of one. An advisory lock: not every role may hold rows of deposits.
 */
export async function lockSuspense(tx: Sql): Promise<void> {
  await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended('suspense', 8082))`);
}

/**
 * Units of an asset in suspense, for who is to take some: until the transaction ends nobody else takes any.
 * Below zero where more was given than came.
 */
export async function lockInSuspense(tx: Sql, asset: string): Promise<bigint> {
  await lockSuspense(tx);
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
