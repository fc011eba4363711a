/** Reads over a range of blocks, from a node that has all of it. */
import type { Height } from "../chain/hex.js";
import { assertHasBlock, headerCall } from "./at.js";
import {
  type JsonRpcClient,
  MAX_BATCH_CALLS,
  resultOf,
  type RpcCall,
  type RpcOptions,
  type RpcOutcome,
} from "./json-rpc.js";

/**
 * Outcomes in the order of the calls, each in one exchange with the header of the range's last block: a node
 * that is behind, as one behind a balancer may be, cuts a range at its head and answers as if there were no
 * more.
 * @param to last block of the range
 * @throws BAD_ANSWER while the node does not have that block; NodeFault
 */
export async function askOverRange(
  rpc: JsonRpcClient,
  to: Height,
  calls: readonly RpcCall[],
  options: RpcOptions,
): Promise<RpcOutcome[]> {
  const outcomes: RpcOutcome[] = [];
  // Beside this header, and that of a known block.
  const most = MAX_BATCH_CALLS - 2;
  for (let start = 0; start < calls.length; start += most) {
    const part = [headerCall(to), ...calls.slice(start, start + most)];
    const [first, ...answers] = await rpc.batch(part, options);
    assertHasBlock(resultOf(first), { height: to, hash: undefined });
    for (const answer of answers) outcomes.push(answer);
  }
  return outcomes;
}
