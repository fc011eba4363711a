/** Pure: how deep a block is below the head. */
import type { Height } from "../chain/hex.js";
import { DepositError } from "./errors.js";

/**
 * Confirmations of a receipt: `headHeight - receiptHeight + 1`; 1 for the head itself (D9).
 * @param heights `headHeight` is the latest committed height, >= `receiptHeight`
 * @throws HEIGHT_BEFORE_RECEIPT
 */
export function confirmationsOf(heights: {
  readonly headHeight: Height;
  readonly receiptHeight: Height;
}): number {
  const { headHeight, receiptHeight } = heights;
  if (headHeight < receiptHeight) {
    throw new DepositError("HEIGHT_BEFORE_RECEIPT", "the head is below the receipt's block", {
      details: { headHeight, receiptHeight },
    });
  }
  return headHeight - receiptHeight + 1;
}
