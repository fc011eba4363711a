/**
 * How deposits are shared out that a chain lost and mined again: what persons had taken of them, what
 * their customers had withdrawn, and what is left to give. By the books of this moment, which a hold
 * that comes back changes.
 */
import type { Sql } from "../../runtime/sql/sql.js";
import { BREAK } from "../journal/accounts.js";
import { REVERSAL_KEY } from "../journal/reversals.js";
import { storedAtoken } from "../stored-values.js";
import { paymentKey, samePayments } from "./same-payment.js";
import { takenByNames } from "./suspense.js";
import { numberedKeys } from "./undone-decisions.js";

/** The parts of a deposit; together they are its amount. */
export interface Share {
  /** To whoever it belongs to. */
  readonly givenUnits: bigint;
  /** Out of suspense before it was lost, by persons: suspense gets it back. */
  readonly takenUnits: bigint;
  /** Fills what was missing. */
  readonly backUnits: bigint;
}

/** What is missing of one payment; those that are the same one have this object in common. */
export interface Short {
  units: bigint;
}

/**
 * Shares deposits out, each in its turn.
 * @param deposits that are stored, and that nothing is booked of yet @returns by their identifiers
 */
export async function shareOut(
  sql: Sql,
  deposits: readonly { readonly id: string; readonly amountUnits: bigint }[],
): Promise<ReadonlyMap<string, Share>> {
  const ids = deposits.map(({ id }) => id);
  const shorts = await readShort(sql, ids);
  const namedUnits = await takenByNames(sql, ids);
  return new Map(
    deposits.map(({ id, amountUnits }) => {
      // What persons had taken of it went to somebody already, out of suspense.
      const takenUnits = least(namedUnits.get(id) ?? 0n, amountUnits);
      const short = shorts.get(id);
      const backUnits = least(short?.units ?? 0n, amountUnits - takenUnits);
      if (short !== undefined) short.units -= backUnits;
      return [id, { givenUnits: amountUnits - takenUnits - backUnits, takenUnits, backUnits }];
    }),
  );
}

/**
 * For who is to book by `readShort`: a hold that comes back at this moment fills it, too, and its own entry
 * holds the balance.
 * @param ids of deposits that are stored
 */
export async function lockShort(tx: Sql, ids: readonly string[]): Promise<void> {
  await tx.query(
    `SELECT 1 FROM customer_balance b
      WHERE (b.customer_id, b.asset) IN (
        SELECT d.customer_id, d.asset
          FROM deposit paid CROSS JOIN LATERAL (${samePayments("paid")}) AS d
         WHERE paid.id = ANY ($1::text[]) AND d.status = 'reversed')
      ORDER BY b.customer_id, b.asset FOR UPDATE`,
    [ids],
  );
}

/**
 * What reversals of the same payments found withdrawn, less what came back of it since.
 * @param ids of deposits that are stored @returns by these
 */
export async function readShort(
  sql: Sql,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Short>> {
  const rows = await sql.query<{ ids: readonly string[]; units: string }>(
    `SELECT paid.ids,
            sum(CASE WHEN p.debit = $2 THEN p.amount_units ELSE -p.amount_units END)::text AS units
       FROM (SELECT min(id) AS id, array_agg(id) AS ids FROM deposit asked
              WHERE id = ANY ($1::text[]) GROUP BY ${paymentKey("asked")}) AS paid
       JOIN deposit one ON one.id = paid.id
       -- One that is mined again as well: what it brought back is not missing any more.
      CROSS JOIN LATERAL (${samePayments("one")}) AS d
      CROSS JOIN LATERAL (${keysOfDeposit("d.id")}) AS entries
       JOIN journal_entry e ON e.idem_key = entries.key
       JOIN posting p ON p.journal_id = e.id AND $2 IN (p.debit, p.credit)
      GROUP BY paid.ids`,
    [ids, BREAK],
  );
  return new Map(
    rows.flatMap(({ ids: same, units }) => {
      // Below zero where a former release had taken what was brought back already.
      const short = { units: storedAtoken(units) < 0n ? 0n : storedAtoken(units) };
      return same.map((id) => [id, short] as const);
    }),
  );
}

/** SQL: keys of the entries that book a deposit. @param id an expression */
export const bookingKeys = (id: string) => numberedKeys(`'deposit:' || ${id}`);

/** SQL: keys of the entries that undo a deposit. @param id an expression */
export const reversalKeys = (id: string) => numberedKeys(`'${REVERSAL_KEY}deposit:' || ${id}`);

/**
 * SQL: keys of the entries of a deposit: its booking, with what it gives since holds came back that it had
 * covered; its reversal, with what holds gave that came back later.
 * @param id an expression
 */
export function keysOfDeposit(id: string): string {
  return `SELECT key FROM (${bookingKeys(id)}) AS booked
           UNION ALL SELECT key FROM (${reversalKeys(id)}) AS undone`;
}

/** The lower of two amounts. */
export function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}
