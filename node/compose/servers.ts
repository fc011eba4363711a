/** The node's listening side: EVM JSON-RPC and WebSocket, consensus RPC, REST, gRPC, metrics. */
import { KIT_VERSION } from "../../chain/version.js";
import type { Height } from "../../chain/hex.js";
import type { ChainAccounts } from "../../chain/chain-accounts.js";
import type { Network } from "../../chain/networks.js";
import { formatListenAddress } from "../../runtime/config/config-values.js";
import { systemClock } from "../../runtime/process/clock.js";
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import type { ChainView } from "../view/chain-view.js";
import {
  type AppConfig,
  gasPriceFloorAtoken,
  type NodeConfig,
  suggestedGasPriceAtoken,
} from "../settings/config.js";
import { memoryBytes } from "../settings/memory-config.js";
import type { ValidatorIdentity } from "../consensus/signing/validator-key.js";
import type { EventBus } from "../view/event-bus.js";
import type { RefusedBlock } from "../consensus/consensus-ports.js";
import { keepsProofsByWindow, stateRetention } from "../settings/pruning-config.js";
import { PROOF_WINDOW_BLOCKS } from "../store/tries/trie-diff.js";
import type { CallWorkers } from "../execution/calls/call-port.js";
import type { TransactionPool } from "../mempool/pool-port.js";
import { type ClientMemory, createClientMemory, meterClientMemory } from "../rpc/client-memory.js";
import type { ConnectionBounds } from "../rpc/connection-bounds.js";
import type { CometChain } from "../rpc/comet/ports.js";
import { type CometServerOptions, startCometServer } from "../rpc/comet/server.js";
import { createEvmApi, type EvmApi } from "../rpc/evm/api.js";
import { startEvmHttpServer } from "../rpc/evm/http-server.js";
import { DEFAULT_EVM_RPC_LIMITS } from "../rpc/evm/options.js";
import { startEvmSocketServer } from "../rpc/evm/sockets/socket-server.js";
import type { QueryRegistry } from "../rpc/cosmos/registry.js";
import { startGrpcServer } from "../rpc/grpc/server.js";
import type { ClaimReads } from "../modules/reads/block-claims.js";
import { searchRate } from "../rpc/rate-limit.js";
import { startRestServer } from "../rpc/rest/server.js";
import { startMetricsServer } from "../rpc/metrics-server.js";
import { serverConnections } from "./connection-room.js";

/** What the servers see of the node. */
export interface ServerParts {
  readonly config: NodeConfig;
  readonly app: AppConfig;
  readonly network: Network;
  readonly view: ChainView;
  readonly bus: EventBus;
  readonly pool: TransactionPool;
  readonly calls: CallWorkers;
  readonly metrics: Metrics;
  /** What the consensus RPC shows. */
  readonly comet: CometChain;
  /** The greatest height that a peer claims; 0 where none has. */
  readonly peerHeight: () => Height;
  /** What REST, gRPC and `abci_query` answer. */
  readonly queries: QueryRegistry;
  /** Absent on a chain without stake. */
  readonly claims?: ClaimReads;
  readonly identity: ValidatorIdentity;
  readonly nodeId: string;
  /** Most gas that a transaction may name (D21). */
  readonly maxTransactionGas: bigint;
  readonly chainAccounts: ChainAccounts;
  /** The last blocks that this node refused. */
  readonly refusedBlocks: () => readonly RefusedBlock[];
  readonly log: Logger;
}

/**
 * Opens every port of the node, in order; on a fault those that are open are closed again.
 * @returns all of them as one part
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function startServers(parts: ServerParts): Promise<Service> {
  const { api, starts } = serverStarts(parts);
  const started: Service[] = [];
  const stop = async () => {
    try {
      await stopTogether(started);
    } finally {
      api.close();
    }
  };
  try {
    for (const start of starts) started.push(await start());
    return { name: "servers", stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Each gives its clients time: one after the other, a silent client on each would take all there is. */
async function stopTogether(servers: readonly Service[]): Promise<void> {
  const ends = await Promise.allSettled(servers.map((server) => server.stop()));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

/** As geth writes it: name, version, platform, runtime. */
function clientVersion(): string {
  const { platform, arch, versions } = process;
  return `causeway/v${KIT_VERSION}/${platform}-${arch}/node${versions.node}`;
}

/** What is deleted as the chain goes on, as the settings say it. */
function retentionOf(app: AppConfig) {
  const pruning = app[""];
  const blocks = pruning["min-retain-blocks"];
  const state = stateRetention(pruning)?.keepRecentBlocks;
  return {
    ...(blocks > 0 && { blocks }),
    ...(state !== undefined && { state, proofs: state }),
    ...(keepsProofsByWindow(pruning) && { proofs: PROOF_WINDOW_BLOCKS }),
  };
}

/** What starts each server, and what the EVM's two ask. */
function serverStarts(parts: ServerParts): {
  readonly api: EvmApi;
  readonly starts: readonly (() => Promise<Service>)[];
} {
  const api = createApi(parts);
  const memory = createClientMemory(systemClock);
  meterClientMemory(memory, parts.metrics);
  const clients = { connections: serverConnections(parts), memory };
  return {
    api,
    starts: [
      ...evmStarts(parts, api, clients),
      () => startCometServer(cometOptions(parts, clients)),
      ...optionalStarts(parts, clients),
    ],
  };
}

/** What all servers together allow their clients. */
interface ClientRoom {
  readonly connections: ConnectionBounds;
  readonly memory: ClientMemory;
}

function createApi(parts: ServerParts): EvmApi {
  const { app } = parts;
  const rpc = app["json-rpc"];
  return createEvmApi({
    ...parts,
    suggestedGasPriceAtoken: suggestedGasPriceAtoken(app),
    minimumGasPriceAtoken: gasPriceFloorAtoken(app),
    isCatchingUp: () => parts.comet.consensus.isCatchingUp(),
    peerCount: () => parts.comet.network.peers().length,
    coinbase: parts.identity.address,
    consensusBlockHash: (height) => parts.comet.consensus.outline(height)?.blockId.hash,
    retention: retentionOf(app),
    namespaces: rpc.api,
    clientVersion: clientVersion(),
    limits: {
      ...DEFAULT_EVM_RPC_LIMITS,
      batchEntries: rpc["batch-request-limit"],
      logBlocks: rpc["block-range-cap"],
      logResults: rpc["logs-cap"],
      searchesPerSecond: rpc["rate-limit"],
      cacheBytes: memoryBytes(app.memory).evmRpcBytes,
    },
    clock: systemClock,
  });
}

function evmStarts({ app }: ServerParts, api: EvmApi, { connections, memory }: ClientRoom) {
  const rpc = app["json-rpc"];
  const browsers = { allowedOrigins: rpc["cors-origins"], memory };
  return [
    () =>
      startEvmHttpServer(api, {
        listen: rpc.address,
        maxConnections: connections.evmHttp,
        ...browsers,
      }),
    () =>
      startEvmSocketServer(api, {
        listen: rpc["ws-address"],
        maxConnections: connections.evmSocket,
        socketOrigins: rpc["ws-origins"],
        ...browsers,
      }),
  ];
}

function cometOptions(parts: ServerParts, { connections, memory }: ClientRoom): CometServerOptions {
  const { config, app, network, view, identity, log } = parts;
  return {
    listen: config.rpc.laddr,
    view,
    network,
    moniker: config[""].moniker,
    nodeId: parts.nodeId,
    p2pListenAddress: formatListenAddress(config.p2p.laddr, "tcp://"),
    rpcListenAddress: formatListenAddress(config.rpc.laddr, "tcp://"),
    isCatchingUp: () => parts.comet.consensus.isCatchingUp(),
    validator: { publicKey: Buffer.from(identity.publicKey, "base64"), votingPower: 0n },
    version: KIT_VERSION,
    allowedOrigins: config.rpc.cors_allowed_origins,
    chain: parts.comet,
    queries: parts.queries,
    cacheBytes: memoryBytes(app.memory).cometRpcBytes,
    searches: searchRate(config.rpc.rate_limit, systemClock),
    maxConnections: connections.comet,
    memory,
    log,
  };
}

/** Servers that the settings may leave out: REST, gRPC, metrics. */
function optionalStarts(parts: ServerParts, { connections, memory }: ClientRoom) {
  const { config, app, queries, metrics, log } = parts;
  const shared = { queries, clock: systemClock, memory, log };
  const starts: (() => Promise<Service>)[] = [];
  if (app.api.enable) {
    const maxConnections = connections.rest;
    starts.push(() => startRestServer({ ...restOptions(app), maxConnections, ...shared }));
  }
  if (app.grpc.enable) {
    const maxConnections = connections.grpc;
    starts.push(() => startGrpcServer({ ...grpcOptions(app), maxConnections, ...shared }));
  }
  if (config.instrumentation.prometheus) {
    const listen = config.instrumentation.prometheus_listen_addr;
    const maxConnections = connections.metrics;
    starts.push(() => startMetricsServer({ listen, metrics, maxConnections, memory, log }));
  }
  return starts;
}

function restOptions({ api }: AppConfig) {
  return {
    listen: api.address,
    allowedOrigins: api["enabled-unsafe-cors"] ? ["*"] : api["cors-origins"],
    isSwaggerServed: api.swagger,
    maxBodyBytes: api["rpc-max-body-bytes"],
    requestsPerSecond: api["rate-limit"],
  };
}

function grpcOptions({ grpc }: AppConfig) {
  return {
    listen: grpc.address,
    requestsPerSecond: grpc["rate-limit"],
  };
}
