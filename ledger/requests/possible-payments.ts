/**
 * What a transaction may have paid: the one rule by which requests are held against transactions that no
 * request asked for. It goes by what moved, not by who signed or what was called: one request too many waits
 * for a person, and none is paid twice.
 */
import type { BalanceChange } from "../../chain/balance-change.js";
import { type Hash32, MAX_WORD } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { isSamePayment, type LoggedTransfer, type PaidTerms } from "./payment-terms.js";

/** A transaction that no request asked for, with everything that it may have paid. */
export interface ForeignPayment {
  readonly hash: Hash32;
  /** See `mayHavePaid`. */
  readonly paid: readonly PaidTerms[];
}

/**
 * Pure: every payment that a transaction's movements of value may have been: each movement, and the sum of
 * those of one asset to one address.
 * @param movements effective ones, without fees: `coinMovements` and `tokenMovements`, or as another
 *   source tells them
 * @param said what its own bytes say, where it succeeded: a token may move units and log nothing
 */
export function mayHavePaid(
  movements: readonly PaidTerms[],
  said?: PaidTerms,
): readonly PaidTerms[] {
  const found = new Map<string, PaidTerms>();
  const sums = new Map<string, PaidTerms>();
  const add = (terms: PaidTerms) => {
    const { destination, contract = "", amountUnits } = terms;
    // No request asks for more: token contracts may log any word, and a sum of them is more than one.
    if (amountUnits === 0n || amountUnits > MAX_WORD) return;
    found.set(`${destination} ${contract} ${amountUnits}`, terms);
  };
  for (const { destination, contract, amountUnits } of movements) {
    add({ destination, contract, amountUnits });
    const key = `${destination} ${contract ?? ""}`;
    const sum = (sums.get(key)?.amountUnits ?? 0n) + amountUnits;
    sums.set(key, { destination, contract, amountUnits: sum });
  }
  for (const sum of sums.values()) add(sum);
  if (said !== undefined) add(said);
  return [...found.values()];
}

/** Pure: movements of coins in a transaction, from whomever, beside its fee. */
export function coinMovements(changes: readonly BalanceChange[]): readonly PaidTerms[] {
  return changes.flatMap(({ reason, to, amountAtoken, effective }) =>
    effective && reason !== "FEE" && to !== undefined
      ? [{ destination: to, amountUnits: amountAtoken, contract: undefined }]
      : [],
  );
}

/** Pure: movements of tokens as their contracts logged them, from whomever. */
export function tokenMovements(transfers: readonly LoggedTransfer[]): readonly PaidTerms[] {
  return transfers.flatMap(({ contract, to, units }) =>
    to === undefined ? [] : [{ destination: to, amountUnits: units, contract }],
  );
}

/** Pure: whether a transaction may have paid this. */
export function mayBePaidBy(terms: PaidTerms, { paid }: Pick<ForeignPayment, "paid">): boolean {
  return paid.some((one) => isSamePayment(terms, one));
}

/** Rows of one statement. */
const CHUNK = 5_000;

/** Keeps what transactions may have paid, for whoever has only the ledger to ask; each once. */
export async function storePossible(tx: Sql, payments: readonly ForeignPayment[]): Promise<void> {
  const rows = payments.flatMap(({ hash, paid }) => paid.map((terms) => ({ hash, ...terms })));
  for (let start = 0; start < rows.length; start += CHUNK) {
    const part = rows.slice(start, start + CHUNK);
    await tx.query(
      `INSERT INTO possible_payment (tx_hash, destination, contract, amount_units)
       SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::numeric[])
       ON CONFLICT DO NOTHING`,
      [
        part.map(({ hash }) => hash),
        part.map(({ destination }) => destination),
        part.map(({ contract }) => contract ?? ""),
        part.map(({ amountUnits }) => amountUnits.toString()),
      ],
    );
  }
}
