/** The worker's view of a node for tests: no honest answer is too late, however busy the machine is. */
import { createJsonRpcClient, type JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import {
  createWalletNode,
  type WalletNode,
  type WalletNodeOptions,
} from "../../../withdrawal-worker/lane/wallet-node.js";
import { PATIENCE_MS } from "../until.js";

/** A client that waits for its answers. */
export function createPatientClient(url: string): JsonRpcClient {
  return createJsonRpcClient({ url, timeoutMs: PATIENCE_MS });
}

/** A node whose estimates are waited for, where the worker would put the payment off. */
export function createPatientNode(
  rpc: JsonRpcClient,
  identity: Parameters<typeof createWalletNode>[1],
  options: WalletNodeOptions = {},
): WalletNode {
  return createWalletNode(rpc, identity, { estimateBudgetMs: PATIENCE_MS, ...options });
}
