/** The online server's pool and call endpoints alone, over a node. */
import { NETWORKS } from "../../../chain/networks.js";
import { createEvmClient, type EvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import type { HttpServer } from "../../../runtime/http/http-server.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { createSidecarServer } from "../../../sidecar/app.js";
import { offlineRoutes } from "../../../sidecar/construction-api/offline.js";
import { type CallPorts, callRoutes } from "../../../sidecar/data-api/call.js";
import { mempoolRoutes } from "../../../sidecar/data-api/mempool.js";
import { networkRoutes } from "../../../sidecar/data-api/network.js";
import { unavailable } from "../../../sidecar/rosetta/endpoint.js";
import { SidecarError } from "../../../sidecar/rosetta/errors.js";
import type { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";

/** Paths of the API files that these tests do not ask. */
const OTHER_DATA_PATHS = [
  "/network/status",
  "/block",
  "/block/transaction",
  "/account/balance",
  "/account/coins",
  "/events/blocks",
  "/search/transactions",
];

export interface RouteServer {
  readonly server: HttpServer;
  readonly client: EvmClient;
  close(): void;
}

/** Resolves blocks by the node's headers alone. */
function headerBlocks(client: EvmClient): CallPorts["blocks"] {
  const { signal } = new AbortController();
  return {
    async resolve({ index, hash }) {
      const header =
        hash === undefined
          ? await client.getBlockHeader(index ?? "latest", { signal })
          : await client.getBlockHeaderByHash(hash, { signal });
      if (header === undefined) throw new SidecarError("BLOCK_NOT_FOUND", { index, hash });
      return { index: header.height, hash: header.hash };
    },
    // What blocks hold is asked of servers with an index.
    kept: () => undefined,
    keptAccounts: () => undefined,
    block: () => Promise.reject(new SidecarError("NOT_AVAILABLE")),
    accountsOf: () => Promise.reject(new SidecarError("NOT_AVAILABLE")),
  };
}

export function routeServer(
  nodeUrl: string,
  parts: {
    registry: TokenRegistry;
    quarantines?: CallPorts["quarantines"];
    placeOf?: CallPorts["placeOf"];
  },
): RouteServer {
  const rpc = createJsonRpcClient({ url: nodeUrl, timeoutMs: 30_000 });
  const client = createEvmClient(rpc);
  const network = NETWORKS.testnet;
  const assertCurrent = () => Promise.resolve();
  const {
    registry,
    placeOf = () => undefined,
    quarantines = { quarantineOf: () => undefined, judgedTo: () => Promise.resolve(0) },
  } = parts;
  const server = createSidecarServer({
    name: "sidecar-online",
    listen: { host: "127.0.0.1", port: 0 },
    log: createLogger({ component: "test", level: "silent" }),
    metrics: createMetrics({ processMetrics: false }),
    dataRoutes: [
      ...networkRoutes(network),
      ...mempoolRoutes({ network, registry, client, assertCurrent }),
      ...callRoutes({
        network,
        registry,
        client,
        quarantines,
        placeOf,
        blocks: headerBlocks(client),
        assertCurrent,
      }),
      ...unavailable(OTHER_DATA_PATHS, "NOT_AVAILABLE"),
    ],
    constructionRoutes: [
      ...offlineRoutes(network, registry),
      ...unavailable(["/construction/metadata", "/construction/submit"], "UNAVAILABLE_OFFLINE"),
    ],
    readiness: () => ({ ready: true }),
  });
  return { server, client, close: () => rpc.close() };
}
