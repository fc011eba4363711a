/** What the state says of accounts, many in a batch. */
import type { Address } from "../chain/address.js";
import type { Atoken } from "../chain/units.js";
import { readQuantity } from "./answer-fields.js";
import { encodeStateAt, type StateAt } from "./at.js";
import type { RpcError } from "./errors.js";
import type { JsonRpcClient, RpcCall, RpcOptions, RpcOutcome } from "./json-rpc.js";

/** An account after a block. */
export interface AccountStateQuery {
  readonly address: Address;
  readonly at: StateAt;
}

/** What one query came to: a refusal of one (pruned state) leaves the others alone. */
export type AccountState =
  | { readonly ok: true; readonly balanceAtoken: Atoken; readonly nonce: bigint }
  | { readonly ok: false; readonly error: RpcError };

/** Reads of accounts. */
export interface AccountStateCalls {
  /** Balance and nonce in the order of the queries. */
  accountStates(
    queries: readonly AccountStateQuery[],
    options: RpcOptions,
  ): Promise<AccountState[]>;
}

/** The calls over a JSON-RPC client. */
export function accountStateCalls(rpc: JsonRpcClient): AccountStateCalls {
  return {
    async accountStates(queries, options) {
      const outcomes = await rpc.batch(queries.flatMap(callsOf), options);
      return queries.map((_query, position) =>
        parseState(outcomes[2 * position], outcomes[2 * position + 1]),
      );
    },
  };
}

function callsOf({ address, at }: AccountStateQuery): RpcCall[] {
  const params = [address, encodeStateAt(at)];
  return [
    { method: "eth_getBalance", params },
    { method: "eth_getTransactionCount", params },
  ];
}

function parseState(balance: RpcOutcome | undefined, nonce: RpcOutcome | undefined): AccountState {
  if (balance?.ok === false) return balance;
  if (nonce?.ok === false) return nonce;
  return {
    ok: true,
    balanceAtoken: readQuantity(balance?.result, "balance"),
    nonce: readQuantity(nonce?.result, "nonce"),
  };
}
