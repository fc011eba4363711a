/** A client of a node for one command. */
import { createEvmClient, type EvmClient } from "../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../rpc-client/json-rpc.js";

/** A client and what ends its connections. */
export interface NodeClient {
  readonly evm: EvmClient;
  readonly close: () => void;
}

/** Creates a client of the node at a URL; nothing is sent before its first call. */
export function createNodeClient(url: string): NodeClient {
  const rpc = createJsonRpcClient({ url });
  return { evm: createEvmClient(rpc), close: () => rpc.close() };
}
