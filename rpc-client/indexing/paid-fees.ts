/** What transactions of a block paid, and how much of that was burned, by the chain's own rule. */
import { burnedOfFee } from "../../chain/abci-event.js";
import type { Atoken } from "../../chain/units.js";
import type { JournaledTransaction } from "../journal-codec.js";

/** What fees are told from. */
type Paid = Pick<JournaledTransaction, "cosmos" | "gasUsed" | "gasPriceAtoken">;

/** The fee of a transaction, atoken. A Cosmos transaction pays what it offers, whatever it uses. */
export function paidFeeAtoken({ cosmos, gasUsed, gasPriceAtoken }: Paid): Atoken {
  return cosmos === undefined ? gasUsed * gasPriceAtoken : cosmos.feeAtoken;
}

/**
 * Of each fee of a block the part that was burned, atoken; together they are what the block burned
 * of its fees.
 * @param transactions all of a block's, EVM transactions first
 */
export function burnedFeesAtoken<T extends Paid>(
  transactions: readonly T[],
): ReadonlyMap<T, bigint> {
  const burned = new Map<T, bigint>();
  let sumAtoken = 0n;
  for (const transaction of inDataOrder(transactions)) {
    const feeAtoken = paidFeeAtoken(transaction);
    burned.set(
      transaction,
      burnedOfFee(feeAtoken, () => sumAtoken % 2n === 1n),
    );
    sumAtoken += feeAtoken;
  }
  return burned;
}

/** As they stand in `data.txs`: Cosmos transactions say their places, the others fill the rest. */
function inDataOrder<T extends Paid>(transactions: readonly T[]): readonly T[] {
  if (transactions.every(({ cosmos }) => cosmos === undefined)) return transactions;
  const waiting = transactions.filter(({ cosmos }) => cosmos === undefined);
  const placed = transactions
    .flatMap((one) => (one.cosmos === undefined ? [] : [{ one, place: one.cosmos.dataIndex }]))
    .toSorted((left, right) => left.place - right.place);
  const ordered: T[] = [];
  let next = 0;
  for (const { one, place } of placed) {
    const before = waiting.slice(next, next + Math.max(0, place - ordered.length));
    ordered.push(...before, one);
    next += before.length;
  }
  return [...ordered, ...waiting.slice(next)];
}
