/** Pure: the states of a withdrawal and the steps allowed between them. */

/** Every state a withdrawal can be in, in the order of its journey; the last four end it. */
export const WITHDRAWAL_STATUSES = [
  "accepted",
  "slotted",
  "signed",
  "broadcast",
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
  accepted: ["slotted", "failed", "rejected", "cancelled", "frozen"],
  slotted: ["signed", "included", "frozen"],
  signed: ["broadcast", "included", "frozen"],
  broadcast: ["included", "frozen"],
  included: ["settled", "failed", "frozen"],
  // Freed by an operator: to `accepted` only with proof that the slot paid nothing.
  frozen: ["accepted", "slotted", "signed", "broadcast", "included", "cancelled"],
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

/** True when nothing can follow: settled, failed, rejected, cancelled. */
export function isFinalStatus(status: WithdrawalStatus): boolean {
  return NEXT_STATUSES[status].length === 0;
}

/** Whether untrusted text names a state. */
export function isWithdrawalStatus(text: string): text is WithdrawalStatus {
  return (WITHDRAWAL_STATUSES as readonly string[]).includes(text);
}
