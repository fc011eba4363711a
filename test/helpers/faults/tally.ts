/**
 * Payouts counted on the chain alone, whatever the ledger says: the hot wallet's transactions that
 * were mined against what customers asked for. No two requests have the same amount.
 */
import type { ChainBlock } from "./chain.js";
import type { FaultExchange } from "./exchange.js";
import { describeMovement, movementOf } from "./movements.js";

/** What became of the requests. */
export interface Tally {
  readonly paidOnce: number;
  /** Paid twice or more, or paid though the destination refuses, or the coins were lost. */
  readonly doubled: number;
  /** The ledger says paid, and the chain has nothing. */
  readonly missing: number;
  /** Neither paid nor ended. */
  readonly stuck: number;
  /** Ended without a payment, as they had to. */
  readonly refused: number;
}

const UNPAID_ENDS = ["failed", "rejected", "cancelled"];

/** Nothing yet. */
export const EMPTY_TALLY: Tally = { paidOnce: 0, doubled: 0, missing: 0, stuck: 0, refused: 0 };

/** Counts the first requests; `blocks` hold everything since the exchange began. */
export async function tallyPayouts(
  exchange: FaultExchange,
  blocks: readonly ChainBlock[],
): Promise<Tally> {
  const { hotWallet, requests, token } = exchange;
  const mined = new Map<string, number>();
  for (const { transactions } of blocks) {
    for (const transaction of transactions) {
      if (transaction.from !== hotWallet) continue;
      const payment = describeMovement(movementOf(transaction, token));
      mined.set(payment, (mined.get(payment) ?? 0) + 1);
    }
  }
  const rows = new Map((await exchange.list("withdrawals")).map((row) => [row["id"], row]));
  const tally = { ...EMPTY_TALLY };
  for (const request of requests) {
    const { kind, id, isToldCancelled, minedAgain } = request;
    const count = mined.get(describeMovement(request)) ?? 0;
    const status = rows.get(String(id))?.["status"];
    const isUnpaid =
      kind === "refusing" ||
      kind === "uncovered" ||
      (isToldCancelled === true && minedAgain !== "paid");
    if (count > 1 || (count > 0 && isUnpaid)) tally.doubled += 1;
    else if (count === 1) tally.paidOnce += 1;
    else if (status === "settled" && minedAgain !== "unpaid") tally.missing += 1;
    else if (UNPAID_ENDS.includes(String(status)) || minedAgain === "unpaid") tally.refused += 1;
    else tally.stuck += 1;
  }
  return tally;
}

/** Both together. */
export function addTallies(left: Tally, right: Tally): Tally {
  return {
    paidOnce: left.paidOnce + right.paidOnce,
    doubled: left.doubled + right.doubled,
    missing: left.missing + right.missing,
    stuck: left.stuck + right.stuck,
    refused: left.refused + right.refused,
  };
}
