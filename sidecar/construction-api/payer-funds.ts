/** Whether a sender can pay in TOKEN, as the node's pool will judge it. */
import type { Atoken } from "../../chain/units.js";
import type { SenderState } from "../../rpc-client/sender-state.js";
import { SidecarError } from "../rosetta/errors.js";
import { tokenAmount } from "../rosetta/identifiers.js";

/** What a sender has for one transaction. */
export interface PayerFunds {
  readonly balanceAtoken: Atoken;
  /** Most that its other executable transactions in the pool may cost together. */
  readonly inPoolAtoken: Atoken;
}

/**
 * What is there for the transaction with this nonce. The pool asks for all that the sender has executable
 * together, and leaves out only the one whose place is taken.
 */
export function fundsFor({ balanceAtoken, waiting }: SenderState, nonce: bigint): PayerFunds {
  const others = waiting.filter((one) => one.nonce !== nonce);
  return {
    balanceAtoken,
    inPoolAtoken: others.reduce((sum, { mostAtoken }) => sum + mostAtoken, 0n),
  };
}

/** @throws INSUFFICIENT_FUNDS where that much does not remain beside what the pool holds */
export function checkFunds({ balanceAtoken, inPoolAtoken }: PayerFunds, costAtoken: Atoken): void {
  const neededAtoken = inPoolAtoken + costAtoken;
  if (balanceAtoken >= neededAtoken) return;
  const { currency, value } = tokenAmount(balanceAtoken);
  throw new SidecarError("INSUFFICIENT_FUNDS", {
    balance: value,
    needed: neededAtoken.toString(),
    ...(inPoolAtoken > 0n ? { in_pool: inPoolAtoken.toString() } : {}),
    currency,
  });
}
