/** Many addresses on the chain at once, each as of one block. */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import { readQuantity } from "../../rpc-client/answer-fields.js";
import { encodeStateAt } from "../../rpc-client/at.js";
import { balanceCall } from "../../rpc-client/evm-client.js";
import { type JsonRpcClient, resultOf } from "../../rpc-client/json-rpc.js";

/** What an address has after a block, and how many nonces it has used. */
export interface AddressState {
  readonly balanceAtoken: Atoken;
  readonly nonce: bigint;
  /** Counts what is executable in the pool, too; read after the rest. */
  readonly pendingNonce: bigint;
}

/** Calls of one exchange. */
const CALLS_AT_ONCE = 900;
const CALLS_PER_ADDRESS = 3;

/**
 * States in the order of the addresses.
 * @param blockHash the block's: what another node behind a balancer has at its height is of another chain
 * @throws RpcError, NodeFault
 */
export async function readAddressStates(
  rpc: JsonRpcClient,
  addresses: readonly Address[],
  blockHash: Hash32,
  options: { readonly signal: AbortSignal },
): Promise<AddressState[]> {
  const states: AddressState[] = [];
  const size = CALLS_AT_ONCE / CALLS_PER_ADDRESS;
  for (let start = 0; start < addresses.length; start += size) {
    const calls = addresses
      .slice(start, start + size)
      .flatMap((address) => [
        balanceCall(address, blockHash),
        { method: "eth_getTransactionCount", params: [address, encodeStateAt(blockHash)] },
        { method: "eth_getTransactionCount", params: [address, "pending"] },
      ]);
    const answers = await rpc.batch(calls, options);
    for (let at = 0; at < answers.length; at += CALLS_PER_ADDRESS) {
      states.push({
        balanceAtoken: readQuantity(resultOf(answers[at]), "balance"),
        nonce: readQuantity(resultOf(answers[at + 1]), "nonce"),
        pendingNonce: readQuantity(resultOf(answers[at + 2]), "pending nonce"),
      });
    }
  }
  return states;
}
