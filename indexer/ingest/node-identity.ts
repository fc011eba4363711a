/** Which chain a node serves, held against the network that is to be indexed. */
import { KnownAccounts } from "../../rpc-client/chain-accounts.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { IndexerError } from "../errors.js";
import type { IndexIdentity } from "../store/progress.js";

/**
 * What a node says of its chain.
 * @param expected EIP-155 chain id of the network that `indexer.toml` names
 * @throws WRONG_NETWORK
 */
export async function readIdentity(
  node: Pick<EvmClient, "chainId" | "genesisHash" | "chainAccounts">,
  expected: bigint,
  options: RpcOptions,
): Promise<IndexIdentity> {
  const accounts = new KnownAccounts(node);
  const [chainId, genesisHash] = await Promise.all([
    node.chainId(options),
    node.genesisHash(options),
    accounts.ask(options),
  ]);
  if (chainId === expected) {
    return { chainId, genesisHash, burnAddress: accounts.current.burnAddress };
  }
  const message = `the node serves chain ${chainId}, indexer.toml wants ${expected}`;
  throw new IndexerError("WRONG_NETWORK", message);
}
