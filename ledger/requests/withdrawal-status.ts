/** Pure: the states of a withdrawal and the steps allowed between them. */

/** Every state a withdrawal can be in, in the order of its journey; the last four end it. */
export const WITHDRAWAL_STATUSES = [
  "pending_approval",
  "accepted",
  "slotted",
  "signed",
  "broadcast",
  "cancelling",
  "included",
  "frozen",
  "settled",
  "failed",
  "rejected",
  "cancelled",
] as const;

/** One of `WITHDRAWAL_STATUSES`. */
export type WithdrawalStatus = (typeof WITHDRAWAL_STATUSES)[number];

/** Steps that may follow each state; a state without steps is an end. */
const NEXT_STATUSES: Readonly<Record<WithdrawalStatus, readonly WithdrawalStatus[]>> = {
  pending_approval: ["accepted", "failed", "rejected", "cancelled", "frozen"],
  // Back to waiting for persons when the policy asks for more of them than it did.
  accepted: ["pending_approval", "slotted", "failed", "rejected", "cancelled", "frozen"],
  slotted: ["signed", "cancelling", "included", "frozen"],
  signed: ["broadcast", "cancelling", "included", "frozen"],
  broadcast: ["cancelling", "included", "frozen"],
  // Until the payment or the transfer that is to take its nonce is mined.
  cancelling: ["included", "frozen"],
  included: ["settled", "failed", "rejected", "cancelled", "frozen"],
  // Freed by an operator: to `accepted` only with proof that the slot paid nothing.
  frozen: ["accepted", "slotted", "signed", "broadcast", "cancelling", "included", "cancelled"],
  settled: [],
  failed: [],
  rejected: [],
  cancelled: [],
};

/** Whether a withdrawal may go from one state to the other in one step. */
export function isAllowedStep(from: WithdrawalStatus, to: WithdrawalStatus): boolean {
  return NEXT_STATUSES[from].includes(to);
}

/** States from which `to` may be reached: the guard of a compare-and-set. */
export function statusesBefore(to: WithdrawalStatus): readonly WithdrawalStatus[] {
  return WITHDRAWAL_STATUSES.filter((from) => isAllowedStep(from, to));
}

/** States without a nonce in which a withdrawal waits: it may still end at once. */
export const WAITING_STATUSES: readonly WithdrawalStatus[] = ["pending_approval", "accepted"];

/**
 * What a state belongs to, as the database computes it (migration 14): waiting without a nonce; open,
 * with one or frozen; paid; ended without payment. Queries name it beside the state, because it is
 * what is indexed.
 */
export type WithdrawalPhase = "waiting" | "open" | "paid" | "unpaid";

/** The phase of a state. */
export function phaseOf(status: WithdrawalStatus): WithdrawalPhase {
  if (WAITING_STATUSES.includes(status)) return "waiting";
  if (status === "settled") return "paid";
  return isFinalStatus(status) ? "unpaid" : "open";
}

/** True when nothing can follow: settled, failed, rejected, cancelled. */
export function isFinalStatus(status: WithdrawalStatus): boolean {
  return NEXT_STATUSES[status].length === 0;
}

/** Whether untrusted text names a state. */
export function isWithdrawalStatus(text: string): text is WithdrawalStatus {
  return (WITHDRAWAL_STATUSES as readonly string[]).includes(text);
}

/**
 * Why a withdrawal's nonce is to be used up by a transfer to the wallet itself: the client asked;
 * its deadline passed; the node refuses the payment for good; it was not mined in time; the policy
 * forbids it by now.
 */
const CANCEL_CAUSES = ["request", "deadline", "refused", "not-mined", "policy"] as const;

/** One of `CANCEL_CAUSES`. */
export type CancelCause = (typeof CANCEL_CAUSES)[number];

/** How a withdrawal ends when the cancelling transfer is the one that is mined. */
export function endOfCancel(cause: CancelCause): "cancelled" | "failed" | "rejected" {
  if (cause === "policy") return "rejected";
  return cause === "request" || cause === "deadline" ? "cancelled" : "failed";
}
