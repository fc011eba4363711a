/** Somebody else's node, looked at before a kit is put on it: which chain, and what it can do. */
import type { Hash32 } from "../../chain/hex.js";
import { NETWORKS, type NetworkName } from "../../chain/networks.js";
import { NodeFault } from "../../rpc-client/errors.js";
import { createEvmClient } from "../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../rpc-client/json-rpc.js";
import { missingNodeMethods } from "../../rpc-client/node-methods.js";
import type { ChainPlan } from "../home/network/attach.js";
import { CliError, sentenceOf } from "../errors.js";

/** Which chain a node serves. */
export interface InspectedNode {
  readonly network: NetworkName;
  /** Hash of block 0. */
  readonly genesisHash: Hash32;
}

/** A node that does not answer within this time counts as not answering. */
const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Asks a node which chain it serves.
 * @throws SERVICE_UNREACHABLE, NODE_UNFIT for one without the kit's methods or of no known network
 */
export async function inspectNode(url: string, signal: AbortSignal): Promise<InspectedNode> {
  const rpc = createJsonRpcClient({ url, timeoutMs: ANSWER_TIMEOUT_MS });
  const place = new URL(url).origin;
  try {
    const client = createEvmClient(rpc);
    const [chainId, genesisHash] = await Promise.all([
      client.chainId({ signal }),
      client.genesisHash({ signal }),
    ]);
    const network = Object.values(NETWORKS).find(({ evmChainId }) => evmChainId === chainId)?.name;
    if (network === undefined) {
      const known = Object.values(NETWORKS).map(
        ({ name, evmChainId }) => `${evmChainId} (${name})`,
      );
      const message = `The node at ${place} is on chain ${chainId}; known are ${known.join(", ")}.`;
      throw new CliError("NODE_UNFIT", message);
    }
    const missing = await missingNodeMethods(client, genesisHash, { signal });
    if (missing.length > 0) {
      throw new CliError(
        "NODE_UNFIT",
        `The node at ${place} has no ${missing.join(", ")}: the kit works on a Causeway node only, ` +
          "because no other one keeps a journal of every balance.",
        { details: { missing } },
      );
    }
    return { network, genesisHash };
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof CliError) throw cause;
    const isSilent = cause instanceof NodeFault && cause.retriable;
    const message = isSilent
      ? `No node answers at ${place}: ${sentenceOf(cause)}`
      : `What answers at ${place} is no node that the kit can work on: ${sentenceOf(cause)}`;
    throw new CliError(isSilent ? "SERVICE_UNREACHABLE" : "NODE_UNFIT", message, { cause });
  }
}

/**
 * Refuses a node of another chain than the one that is meant.
 * @throws NODE_FOREIGN with the remedy
 */
export function assertNodeOfPlan(
  node: InspectedNode,
  plan: Extract<ChainPlan, { readonly kind: "remote" }>,
  url: string,
): void {
  const place = new URL(url).origin;
  if (plan.network !== undefined && node.network !== plan.network) {
    const message =
      `The node at ${place} is of ${node.network}, not of ${plan.network}: connect the right node, ` +
      "or use another --home for another chain.";
    throw new CliError("NODE_FOREIGN", message, { details: { ...node } });
  }
  if (plan.genesisHash === undefined || node.genesisHash === plan.genesisHash) return;
  const message =
    `The node at ${place} serves another chain (genesis ${node.genesisHash}) than this home is of ` +
    `(${plan.genesisHash}): connect a node of that chain, or use another --home for another chain.`;
  throw new CliError("NODE_FOREIGN", message, { details: { ...node } });
}
