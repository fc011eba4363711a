/** Why a node does not know a block that the index has, and which blocks it has. */
import type { Height } from "../../chain/hex.js";
import { RpcError } from "../../rpc-client/errors.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { SidecarError } from "../rosetta/errors.js";
import type { BlockIdentifier } from "../rosetta/identifiers.js";

/**
 * The fault of a node that was asked for a block, or its state, by the hash that the index has, and
 * does not know it. Of a block that it deleted it has forgotten the hash as well.
 * @returns NODE_SYNCING where it has not come so far, NODE_FAULT where it has another block there
 * @throws RpcError of pruned history where it has deleted it, and what the client throws
 */
export async function missingBlockFault(
  client: Pick<EvmClient, "getBlockHeader">,
  { index, hash }: BlockIdentifier,
  rpc: RpcOptions,
): Promise<SidecarError> {
  const header = await client.getBlockHeader(index, rpc);
  if (header === undefined || header.hash === hash)
    return new SidecarError("NODE_SYNCING", { index });
  const reason = "the node has another block than the index";
  return new SidecarError("NODE_FAULT", { reason, index, node: header.hash, hash });
}

/**
 * Where blocks and balances of a node begin: older replies may be in the index, and no state belongs to
 * them. Block 0 where a node does not say. Throws NodeFault.
 */
export async function oldestOf(
  client: Pick<EvmClient, "oldestHeight">,
  rpc: RpcOptions,
): Promise<Height> {
  try {
    return await client.oldestHeight(rpc);
  } catch (error) {
    if (error instanceof RpcError) return 0;
    throw error;
  }
}
