/** Whether a sender can pay in TOKEN, as the node's pool will judge it. */
import type { Address } from "../../chain/address.js";
import type { ErrorDetails } from "../../chain/errors.js";
import { TRANSFER_GAS } from "../../chain/networks.js";
import { mostCostAtoken } from "../../chain/transaction-rules.js";
import type { Atoken } from "../../chain/units.js";
import { lacksFunds, RpcError } from "../../rpc-client/errors.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import type { SenderState } from "../../rpc-client/sender-state.js";
import { isExecutionFailure } from "../../rpc-client/tokens/token-balances.js";
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
    inPoolAtoken: others.reduce((sum, other) => sum + mostCostAtoken(other), 0n),
  };
}

/** @throws INSUFFICIENT_FUNDS where that much does not remain beside what the pool holds */
export function checkFunds(funds: PayerFunds, costAtoken: Atoken): void {
  const { balanceAtoken, inPoolAtoken } = funds;
  if (balanceAtoken >= inPoolAtoken + costAtoken) return;
  throw new SidecarError("INSUFFICIENT_FUNDS", {
    balance: balanceAtoken.toString(),
    ...neededOf(funds, costAtoken),
  });
}

/**
 * A balance holds coins that a schedule locks, too, and the pool judges by the others. The node tells them by
 * a message that carries as much: a plain one, because an estimate of the call itself lowers its gas to what
 * the sender can pay, and leaves out what the gas limit has beyond it.
 * @param payment what value and fee come to
 * @throws INSUFFICIENT_FUNDS where that much is not free beside what the pool holds
 */
export async function checkFree(
  client: Pick<EvmClient, "call">,
  payment: { readonly from: Address; readonly costAtoken: Atoken; readonly funds: PayerFunds },
  rpc: RpcOptions,
): Promise<void> {
  const { from, costAtoken, funds } = payment;
  const valueAtoken = funds.inPoolAtoken + costAtoken;
  try {
    await client.call({ from, to: from, gas: TRANSFER_GAS, valueAtoken }, "latest", rpc);
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    if (lacksFunds(error)) {
      const details = { ...neededOf(funds, costAtoken), reason: error.nodeMessage };
      throw new SidecarError("INSUFFICIENT_FUNDS", details, error);
    }
    // What code of the sender's own does is another matter.
    if (!isExecutionFailure(error)) throw error;
  }
}

function neededOf({ inPoolAtoken }: PayerFunds, costAtoken: Atoken): ErrorDetails {
  const { currency, value } = tokenAmount(inPoolAtoken + costAtoken);
  const inPool = inPoolAtoken > 0n ? { in_pool: inPoolAtoken.toString() } : {};
  return { needed: value, ...inPool, currency };
}
