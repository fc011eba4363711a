/**
 * From balance changes to numbered operations: the one rule that the Data API and the node's
 * account journal share, so that an operation index means the same everywhere.
 */
import type { Address } from "./address.js";
import type { BalanceChange, BalanceReason } from "./balance-change.js";
import type { Atoken } from "./units.js";

/** Outcome of an operation: only SUCCESS moved coins. */
export type OperationStatus = "SUCCESS" | "FAILURE";

/** One account's side of one balance change. */
export interface Operation {
  /** Position within its transaction, 0-based and without gaps. */
  readonly index: number;
  readonly type: BalanceReason;
  readonly status: OperationStatus;
  readonly address: Address;
  /** Negative for the paying side, positive for the receiving one; zero is possible. */
  readonly amountAtoken: Atoken;
  /** Index of the paying side, on the receiving side of a change that has both. */
  readonly relatedIndex: number | undefined;
  /** The change this operation is a side of. */
  readonly change: BalanceChange;
}

/**
 * Operations of one transaction, or of a block's block-level transaction, in order. A change with
 * both sides gives two (first `from`, then `to`, related to it), a one-sided change gives one.
 */
export function operationsOf(changes: readonly BalanceChange[]): Operation[] {
  const operations: Operation[] = [];
  for (const change of changes) {
    const { from, to, amountAtoken } = change;
    const payerIndex = from === undefined ? undefined : operations.length;
    if (from !== undefined) operations.push(side(operations.length, change, from, -amountAtoken));
    if (to !== undefined) {
      operations.push(side(operations.length, change, to, amountAtoken, payerIndex));
    }
  }
  return operations;
}

/** One literal for every operation: blocks have thousands, and equal shapes are fast. */
function side(
  index: number,
  change: BalanceChange,
  address: Address,
  amountAtoken: Atoken,
  relatedIndex?: number,
): Operation {
  return {
    index,
    type: change.reason,
    status: change.effective ? "SUCCESS" : "FAILURE",
    address,
    amountAtoken,
    relatedIndex,
    change,
  };
}
