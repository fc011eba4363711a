/** How deep a block is below the head, and how deep is enough (D9). */
import type { Height } from "./hex.js";
import { ChainError } from "./errors.js";

/** Confirmations that a credit needs. */
export const CREDIT_CONFIRMATIONS = 2;

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
    throw new ChainError("HEIGHT_BEFORE_RECEIPT", "the head is below the receipt's block", {
      details: { headHeight, receiptHeight },
    });
  }
  return headHeight - receiptHeight + 1;
}
