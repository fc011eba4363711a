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

/** A node whose estimates and receipts are waited for, where the worker would look again later. */
export function createPatientNode(
  rpc: JsonRpcClient,
  identity: Parameters<typeof createWalletNode>[1],
  options: WalletNodeOptions = {},
): WalletNode {
  const budgets = { estimateBudgetMs: PATIENCE_MS, receiptsBudgetMs: PATIENCE_MS };
  return createWalletNode(rpc, identity, { ...budgets, ...options });
}
