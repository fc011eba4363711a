/** What is done to books before persons decide about them, and what they say then. */
import type { Address } from "../../../../chain/address.js";
import { derivation, Desk } from "../desk.js";

/** What persons give with every decision. */
export const REASON = ["--reason", "the auditor asked", "--operator", "ann"];

/** The books of a desk. */
export function booksOf(deskNow: () => Desk) {
  /** Somebody moves coins of one of our addresses with its own key. */
  function takeFrom(from: Address, to: Address, amountAtoken: bigint): string {
    const taken = deskNow().chain.payment(from, to, amountAtoken);
    deskNow().chain.mine([taken]);
    deskNow().chain.mine();
    return taken.hash;
  }

  async function reconcile() {
    return deskNow().causeway("reconcile");
  }

  async function totals(account: string): Promise<bigint> {
    const [row] = await deskNow().database.query<{ balance: string }>(
      `SELECT coalesce(sum(CASE WHEN debit = $1 THEN amount_units ELSE -amount_units END), 0)
            AS balance FROM posting WHERE debit = $1 OR credit = $1`,
      [account],
    );
    return BigInt(row?.balance ?? "0");
  }

  /** Pays two addresses before they are anybody's. @returns the deposits' ids, the smaller one's first */
  async function twoInSuspense(...amounts: readonly [bigint, bigint]): Promise<[string, string]> {
    await deskNow().watch();
    deskNow().pay([derivation.addressAt(0), amounts[0]], [derivation.addressAt(1), amounts[1]]);
    deskNow().chain.mine();
    await deskNow().watch();
    await deskNow().register("alice");
    await deskNow().register("bob");
    deskNow().chain.mine();
    await deskNow().watch();
    const rows = await deskNow().database.query<{ id: string }>(
      `SELECT id FROM deposit WHERE status = 'suspense' ORDER BY amount_units, id`,
    );
    const [one, two] = rows.map(({ id }) => id);
    if (one === undefined || two === undefined) throw new Error("two deposits are in suspense");
    return [one, two];
  }

  return { takeFrom, reconcile, totals, twoInSuspense };
}
