/** What clients ask about the node itself: chain id, sync, network, version, pool content. */
import { METHOD_NAMESPACES } from "../../../../chain/evm/method-namespaces.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { toQuantity } from "../../../../chain/hex.js";
import type { TransactionPool } from "../../../mempool/pool-port.js";
import { pendingTransactionJson } from "../../../view/evm-json.js";
import { contentFromJson, contentJson, poolHashesJson, summary } from "../json/pool-content.js";
import { type JsonValue, type MethodEntries, method } from "../method.js";
import type { EvmApiOptions } from "../options.js";
import { parseAddressParam, parseBytes } from "../params.js";

/** eth/68, the wire protocol that go-ethereum names; clients only show it. */
const PROTOCOL_VERSION = "0x44";

/** Of those the ones that the kit's own services and clients' first look cannot do without. */
const ALWAYS_SERVED: readonly string[] = ["causeway", "rpc"];

/** The methods that an operator has served. @param namespaces none for all of them */
export function servedMethods(
  entries: MethodEntries,
  namespaces: readonly string[] = [],
): MethodEntries {
  return entries.filter(([name]) => isServed(name.slice(0, name.indexOf("_")), namespaces));
}

function isServed(namespace: string, namespaces: readonly string[]): boolean {
  if (namespaces.length === 0) return true;
  return namespaces.includes(namespace) || ALWAYS_SERVED.includes(namespace);
}

/** eth_chainId, eth_syncing, net_*, web3_*, rpc_modules; the node holds no accounts' keys. */
export function nodeMethods(options: EvmApiOptions): MethodEntries {
  const { evmChainId } = options.network;
  const startingBlock = toQuantity(options.view.head().height);
  const served = METHOD_NAMESPACES.filter((namespace) =>
    isServed(namespace, options.namespaces ?? []),
  );
  const modules = Object.fromEntries(served.map((namespace) => [namespace, "1.0"]));
  return [
    method("eth_chainId", 0, () => toQuantity(evmChainId)),
    method("eth_syncing", 0, () => options.isCatchingUp() && syncProgress(options, startingBlock)),
    method("eth_accounts", 0, () => []),
    method("eth_protocolVersion", 0, () => PROTOCOL_VERSION),
    method("net_version", 0, () => evmChainId.toString()),
    method("net_listening", 0, () => true),
    method("net_peerCount", 0, () => toQuantity(options.peerCount())),
    method("web3_clientVersion", 0, () => options.clientVersion),
    method("web3_sha3", 1, (params) => keccak256Hex(params.required(0, parseBytes))),
    method("rpc_modules", 0, () => modules),
  ];
}

/** How far the node is: of a mere `true` go-ethereum's client says that nothing is going on. */
function syncProgress({ view, peerHeight }: EvmApiOptions, startingBlock: string): JsonValue {
  const { height } = view.head();
  return {
    startingBlock,
    currentBlock: toQuantity(height),
    highestBlock: toQuantity(Math.max(height, peerHeight())),
  };
}

/**
 * txpool_*: the pool as go-ethereum shows it, senders checksummed, nonces decimal; and
 * causeway_getPoolHashes, which for a full pool is a hundredth of txpool_content.
 */
export function poolMethods(pool: TransactionPool, maxBytes: number): MethodEntries {
  return [
    method("txpool_status", 0, () => {
      const { pending, queued } = pool.counts();
      return { pending: toQuantity(pending), queued: toQuantity(queued) };
    }),
    method("txpool_content", 0, (_params, context) =>
      contentJson(pool, pendingTransactionJson, { maxBytes, context }),
    ),
    method("txpool_contentFrom", 1, (params, context) => {
      const content = pool.contentFrom(params.required(0, parseAddressParam));
      return contentFromJson(content, pendingTransactionJson, { maxBytes, context });
    }),
    method("txpool_inspect", 0, (_params, context) =>
      contentJson(pool, summary, { maxBytes, context }),
    ),
    method("causeway_getPoolHashes", 0, (_params, context) =>
      poolHashesJson(pool, { maxBytes, context }),
    ),
  ];
}
