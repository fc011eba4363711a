/** What a withdrawal holds of its customer's balance, and where that goes: amount and service fee. */
import {
  type AccountCode,
  customerAccount,
  heldAccount,
  parseCustomerId,
  WITHDRAWAL_FEES,
} from "../journal/accounts.js";
import type { Posting } from "../journal/journal.js";
import type { ReturnedHold } from "../deposits/deposit-credit.js";

/** What is held, and of whom. */
export interface HeldTerms {
  readonly customerId: string;
  readonly asset: string;
  readonly amountUnits: bigint;
  readonly feeUnits: bigint;
}

/** The hold, when a request is accepted. */
export function holdPostings(held: HeldTerms): Posting[] {
  const customerId = parseCustomerId(held.customerId);
  return move(held, customerAccount(customerId), heldAccount(customerId));
}

/** The whole hold back to the customer: a withdrawal that is not paid costs no fee. */
export function releasePostings(held: HeldTerms): Posting[] {
  const customerId = parseCustomerId(held.customerId);
  return move(held, heldAccount(customerId), customerAccount(customerId));
}

/** What its customer has again of a withdrawal that ended without payment. @param keptUnits a fee for that */
export function returnedHold(
  withdrawalId: string,
  { amountUnits, feeUnits }: HeldTerms,
  keptUnits = 0n,
): ReturnedHold {
  return { withdrawalId, units: amountUnits + feeUnits - keptUnits };
}

/** The fee becomes the exchange's, when the payment is settled. */
export function earnedFeePostings({ customerId, asset, feeUnits }: HeldTerms): Posting[] {
  if (feeUnits === 0n) return [];
  const debit = heldAccount(parseCustomerId(customerId));
  return [{ asset, debit, credit: WITHDRAWAL_FEES, amountUnits: feeUnits }];
}

/** The fee back to the customer, where the amount goes another way. */
export function releasedFeePostings({ customerId, asset, feeUnits }: HeldTerms): Posting[] {
  if (feeUnits === 0n) return [];
  const customer = parseCustomerId(customerId);
  const [debit, credit] = [heldAccount(customer), customerAccount(customer)];
  return [{ asset, debit, credit, amountUnits: feeUnits }];
}

function move(
  { asset, amountUnits, feeUnits }: HeldTerms,
  debit: AccountCode,
  credit: AccountCode,
): Posting[] {
  const parts = [amountUnits, feeUnits].filter((units) => units > 0n);
  return parts.map((units) => ({ asset, debit, credit, amountUnits: units }));
}
