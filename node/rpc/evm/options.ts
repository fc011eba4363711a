/** What the JSON-RPC servers need from the node, and the limits they keep. */
import type { ListenAddress } from "../../../runtime/config/config-values.js";
import type { Address } from "../../../chain/address.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import type { ChainAccounts } from "../../../chain/chain-accounts.js";
import type { Network } from "../../../chain/networks.js";
import type { Atoken } from "../../../chain/units.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import type { Metrics } from "../../../runtime/process/metrics.js";
import type { ChainView } from "../../view/chain-view.js";
import type { EventBus } from "../../view/event-bus.js";
import type { CallWorkers } from "../../execution/calls/call-port.js";
import type { TransactionPool } from "../../mempool/pool-port.js";
import type { ClaimReads } from "../../modules/reads/block-claims.js";
import type { ClientMemory } from "../client-memory.js";
import type { RefusedBlock } from "../../consensus/consensus-ports.js";

/** Bounds of the EVM JSON-RPC (D16); some are keys of app.toml's `[json-rpc]` (`node/settings/config.ts`). */
export interface EvmRpcLimits {
  /** Largest body of a single call. */
  readonly bodyBytes: number;
  /** Largest body of a batch. */
  readonly batchBodyBytes: number;
  readonly batchEntries: number;
  /** After this many bytes the rest of a batch is refused with -32003. */
  readonly batchResponseBytes: number;
  /** Largest single result. */
  readonly responseBytes: number;
  /** Blocks in one eth_getLogs range, both ends counted. */
  readonly logBlocks: number;
  readonly logResults: number;
  readonly feeHistoryBlocks: number;
  /** Searches of logs and subscriptions that one client may begin in a second; 0 sets no bound. */
  readonly searchesPerSecond: number;
  /** Installed filters at once; each idles out after `filterIdleMs`. */
  readonly filters: number;
  readonly filterIdleMs: number;
  /** One request (a batch counts as one) ends with -32002 after this time. */
  readonly requestTimeoutMs: number;
  /** Bytes of serialised blocks, receipts and journals that stay in memory. */
  readonly cacheBytes: number;
  readonly webSocketConnections: number;
  readonly subscriptionsPerConnection: number;
  /** Unsent bytes after which a subscriber counts as too slow and is dropped. */
  readonly backlogBytes: number;
}

/**
 * Defaults: D16. A node has `cacheBytes` of its settings (`[memory] rpc-cache`).
 *
 * `responseBytes` holds the journal of every block, or nobody who follows the chain would get past it. Of
 * what fills one, logs without topics have the most JSON for their second of compute units (D21): with two
 * words of data 209 bytes, which weigh 3.4 us by the first weights and 4.0 by the fifth, so 62 MB at most.
 * Transfers with all of the input that a journal gives come to 56 MB, moves within calls to 20, those of
 * failed Cosmos transactions, each with its error, to 10.
 */
export const DEFAULT_EVM_RPC_LIMITS: EvmRpcLimits = {
  bodyBytes: 5 * 1024 * 1024,
  batchBodyBytes: 25_000_000,
  batchEntries: 1_000,
  batchResponseBytes: 25_000_000,
  responseBytes: 64 * 1024 * 1024,
  logBlocks: 10_000,
  logResults: 10_000,
  feeHistoryBlocks: 1_024,
  searchesPerSecond: 0,
  filters: 10_000,
  filterIdleMs: 5 * 60_000,
  requestTimeoutMs: 30_000,
  cacheBytes: 32 * 1024 * 1024,
  webSocketConnections: 1_000,
  subscriptionsPerConnection: 256,
  backlogBytes: 16 * 1024 * 1024,
};

/** Everything `createEvmApi` is built from; the servers see the node only through these. */
export interface EvmApiOptions {
  readonly view: ChainView;
  readonly bus: EventBus;
  readonly pool: TransactionPool;
  readonly calls: CallWorkers;
  /** Claims on stake and rewards; absent on a chain without stake. */
  readonly claims?: ClaimReads;
  /** Hash of a block's consensus header (D8); undefined for genesis, which nobody signed. */
  readonly consensusBlockHash: (height: Height) => Hash32 | undefined;
  readonly network: Network;
  /** Answer of eth_gasPrice and eth_maxPriorityFeePerGas (D1). */
  readonly suggestedGasPriceAtoken: Atoken;
  /** Lowest gas price that the pool takes (D1). */
  readonly minimumGasPriceAtoken: Atoken;
  readonly isCatchingUp: () => boolean;
  /** The greatest height that a peer claims; 0 where none has. */
  readonly peerHeight: () => Height;
  readonly peerCount: () => number;
  /** What the blocks that this node proposes show as their miner. */
  readonly coinbase: Address;
  /** Most gas that a transaction may name (D21). */
  readonly maxTransactionGas: bigint;
  /** As the genesis has them. */
  readonly chainAccounts: ChainAccounts;
  /** For how many of the last blocks data is kept; absent where nothing of the kind is deleted. */
  readonly retention: {
    readonly blocks?: number;
    readonly state?: number;
    readonly proofs?: number;
  };
  /** The last blocks that this node refused, the newest first. */
  readonly refusedBlocks: () => readonly RefusedBlock[];
  /** Answer of web3_clientVersion, for example `causeway/v0.1.0/linux-x64/node20.20.2`. */
  readonly clientVersion: string;
  /** First parts of the names of methods that are served; empty or absent for all. */
  readonly namespaces?: readonly string[];
  readonly limits: EvmRpcLimits;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Options of the HTTP and WebSocket servers beside the API. */
export interface EvmServerOptions {
  readonly listen: ListenAddress;
  /**
   * Browser origins that may call, "*" for all. None by default: requests that carry an Origin
   * get no CORS permission and no WebSocket; programs send no Origin, or the server's own.
   */
  readonly allowedOrigins: readonly string[];
  /** More that may open a WebSocket, as `ws-origins` writes them. */
  readonly socketOrigins?: readonly string[];
  /** Connections at once; by default as many as where files are plenty. */
  readonly maxConnections?: number;
  /** What the clients of all servers together may make the node keep. */
  readonly memory: ClientMemory;
}
