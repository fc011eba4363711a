/**
 * Stake that moves while votes are counted over several blocks. What was counted by its owner's vote
 * stays counted, once: at its new place it follows nobody, and at the old one nothing is missing.
 */
import type { Address } from "../../../chain/address.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { Proposals } from "./proposal-record.js";

/**
 * Tells the counting of a delegation that changes.
 * @param change shares that come, or go where it is negative
 */
export function noteMovedShares(
  state: JournaledState,
  { operator, delegator }: { readonly operator: Address; readonly delegator: Address },
  change: bigint,
): void {
  const { counting } = new Proposals(state);
  if (counting?.isCounted(delegator) !== true) return;
  const counted = counting.countedShares(operator) + change;
  counting.setCountedShares(operator, counted > 0n ? counted : 0n);
}
