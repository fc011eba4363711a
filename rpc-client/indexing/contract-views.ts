/** Views of contracts that may do anything: bounded gas, and a failure is an answer as well. */
import type { Address } from "../../chain/address.js";
import { type Hex, hexToBytes, toQuantity } from "../../chain/hex.js";
import { readHex } from "../answer-fields.js";
import { encodeStateAt, type StateAt } from "../at.js";
import { type JsonRpcClient, resultOf, type RpcOptions } from "../json-rpc.js";
import { isExecutionFailure } from "../tokens/token-balances.js";

/** One call that changes nothing. */
export interface ContractView {
  readonly contract: Address;
  readonly data: Hex;
  readonly at: StateAt;
}

/** Reads of contracts. */
export interface ContractViewCalls {
  /** Answered bytes in the order of the views; undefined where the contract fails. */
  contractViews(
    views: readonly ContractView[],
    options: RpcOptions,
  ): Promise<(Uint8Array | undefined)[]>;
}

/** Gas of one view: far more than any honest token takes, and a bound for the others. */
const VIEW_GAS = 500_000n;

/**
 * Views in one exchange. The dearest code that there is uses up the compute units of a transaction, a
 * quarter of a second of the reference machine by default, before `VIEW_GAS`: five seconds in all.
 */
const MAX_VIEWS_AT_ONCE = 20;

/** The calls over a JSON-RPC client. */
export function contractViewCalls(rpc: JsonRpcClient): ContractViewCalls {
  return {
    async contractViews(views, options) {
      const answers: (Uint8Array | undefined)[] = [];
      for (let start = 0; start < views.length; start += MAX_VIEWS_AT_ONCE) {
        const calls = views.slice(start, start + MAX_VIEWS_AT_ONCE).map((view) => ({
          method: "eth_call",
          params: [
            { to: view.contract, gas: toQuantity(VIEW_GAS), data: view.data },
            encodeStateAt(view.at),
          ],
        }));
        for (const outcome of await rpc.batch(calls, options)) {
          const isFailed = !outcome.ok && isExecutionFailure(outcome.error);
          answers.push(isFailed ? undefined : hexToBytes(readHex(resultOf(outcome), "view")));
        }
      }
      return answers;
    },
  };
}
