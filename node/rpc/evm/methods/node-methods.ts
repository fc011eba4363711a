/** What clients ask about the node itself: chain id, sync, network, version, pool content. */
import { type Address, toChecksumAddress } from "../../../../chain/address.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { toQuantity } from "../../../../chain/hex.js";
import { effectiveGasPriceAtoken } from "../../../../chain/transaction.js";
import { type BlockTransaction, isEvm } from "../../../../chain/block.js";
import type { PendingTransaction } from "../../../view/event-bus.js";
import type { SenderContent, TransactionPool } from "../../../mempool/pool-port.js";
import { pendingTransactionJson } from "../encode.js";
import { type JsonValue, type MethodEntries, method, RawJson } from "../method.js";
import type { EvmApiOptions } from "../options.js";
import { parseAddressParam, parseBytes } from "../params.js";

/** eth/68, the wire protocol that go-ethereum names; clients only show it. */
const PROTOCOL_VERSION = "0x44";

/** Namespaces served, as rpc_modules lists them. */
const MODULES: JsonValue = {
  causeway: "1.0",
  debug: "1.0",
  eth: "1.0",
  net: "1.0",
  rpc: "1.0",
  txpool: "1.0",
  web3: "1.0",
};

/** eth_chainId, eth_syncing, net_*, web3_*, rpc_modules; the node holds no accounts' keys. */
export function nodeMethods(options: EvmApiOptions): MethodEntries {
  const { evmChainId } = options.network;
  return [
    method("eth_chainId", 0, () => toQuantity(evmChainId)),
    method("eth_syncing", 0, () => options.isCatchingUp()),
    method("eth_accounts", 0, () => []),
    method("eth_protocolVersion", 0, () => PROTOCOL_VERSION),
    method("net_version", 0, () => evmChainId.toString()),
    method("net_listening", 0, () => true),
    method("net_peerCount", 0, () => toQuantity(options.peerCount())),
    method("web3_clientVersion", 0, () => options.clientVersion),
    method("web3_sha3", 1, (params) => keccak256Hex(params.required(0, parseBytes))),
    method("rpc_modules", 0, () => MODULES),
  ];
}

/**
 * txpool_*: the pool as go-ethereum shows it, senders checksummed, nonces decimal; and
 * causeway_getPoolHashes, which for a full pool is a hundredth of txpool_content.
 */
export function poolMethods(pool: TransactionPool): MethodEntries {
  return [
    method("txpool_status", 0, () => {
      const { pending, queued } = pool.counts();
      return { pending: toQuantity(pending), queued: toQuantity(queued) };
    }),
    method("txpool_content", 0, () => contentJson(pool.content(), pendingTransactionJson)),
    method("txpool_contentFrom", 1, (params) => {
      const content = pool.contentFrom(params.required(0, parseAddressParam));
      const pending = byNonce(content.pending, pendingTransactionJson);
      const queued = byNonce(content.queued, pendingTransactionJson);
      return new RawJson(`{"pending":${pending},"queued":${queued}}`);
    }),
    method("txpool_inspect", 0, () => contentJson(pool.content(), summary)),
    method("causeway_getPoolHashes", 0, () => poolHashesJson(pool.content())),
  ];
}

/** All hashes of EVM transactions in the pool; a sender's in nonce order. */
function poolHashesJson(content: ReadonlyMap<Address, SenderContent>): RawJson {
  const pending: string[] = [];
  const queued: string[] = [];
  for (const lists of content.values()) {
    for (const { tx } of lists.pending.filter(isEvm)) pending.push(`"${tx.hash}"`);
    for (const { tx } of lists.queued.filter(isEvm)) queued.push(`"${tx.hash}"`);
  }
  return new RawJson(`{"pending":[${pending.join(",")}],"queued":[${queued.join(",")}]}`);
}

type Describe = (pending: BlockTransaction) => string;

function summary({ tx }: BlockTransaction): string {
  const gas = `${tx.gasLimit} gas × ${effectiveGasPriceAtoken(tx)} wei`;
  const target = tx.to === undefined ? "contract creation" : toChecksumAddress(tx.to);
  return JSON.stringify(`${target}: ${tx.valueAtoken} wei + ${gas}`);
}

function byNonce(transactions: readonly PendingTransaction[], describe: Describe): string {
  const members = transactions
    .filter(isEvm)
    .map((pending) => `"${pending.tx.nonce}":${describe(pending)}`);
  return `{${members.join(",")}}`;
}

function contentJson(content: ReadonlyMap<Address, SenderContent>, describe: Describe): RawJson {
  const part = (name: keyof SenderContent): string => {
    const senders = [...content].flatMap(([sender, lists]) => {
      const list = lists[name];
      if (list.length === 0) return [];
      return [`"${toChecksumAddress(sender)}":${byNonce(list, describe)}`];
    });
    return `{${senders.join(",")}}`;
  };
  return new RawJson(`{"pending":${part("pending")},"queued":${part("queued")}}`);
}
