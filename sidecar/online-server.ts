/** The online server: Data API and Construction API over one node. */
import type { Network } from "../chain/networks.js";
import type { EvmClient } from "../rpc-client/evm-client.js";
import type { Clock } from "../runtime/clock.js";
import type { HttpServer } from "../runtime/http-server.js";
import type { Metrics } from "../runtime/metrics.js";
import { createSidecarServer, type SidecarServerOptions } from "./app.js";
import { offlineRoutes } from "./construction-api/offline.js";
import { type FeePolicy, onlineRoutes } from "./construction-api/online.js";
import { accountRoutes } from "./data-api/account.js";
import { blockRoutes } from "./data-api/block.js";
import { type BlockSource, createBlockSource } from "./data-api/block-source.js";
import { networkRoutes } from "./data-api/network.js";
import { statusRoutes } from "./data-api/status.js";
import { unavailable } from "./endpoint.js";
import { createNodeReadiness } from "./node-readiness.js";

/** What the online server is made of. */
export interface OnlineServerOptions
  extends Pick<SidecarServerOptions, "listen" | "log" | "metrics"> {
  readonly network: Network;
  readonly client: EvmClient;
  /** Bound of the cache of finished blocks. */
  readonly cacheBytes: number;
  /** A source to share with the follower of the head; one of its own where absent. */
  readonly source?: BlockSource;
  readonly feePolicy: FeePolicy;
  /** Oldest newest block with which the server still calls itself ready. */
  readonly maxBlockAgeMs: number;
  readonly clock: Clock;
  /** The process's signal. */
  readonly signal: AbortSignal;
}

/** Listed by Rosetta, not served yet. */
const UNSERVED_PATHS = [
  "/mempool",
  "/mempool/transaction",
  "/call",
  "/events/blocks",
  "/search/transactions",
];

/** Makes the server; it asks the node nothing before its first request. */
export function createOnlineServer(options: OnlineServerOptions): HttpServer {
  const { network, client, listen, log, metrics, signal } = options;
  const { cacheBytes } = options;
  const source = options.source ?? createBlockSource({ client, cacheBytes, signal });
  const blocks = blockRoutes({ network, source });
  exportCacheMetrics(source, metrics);
  return createSidecarServer({
    name: "sidecar-online",
    listen,
    log,
    metrics,
    dataRoutes: [
      ...networkRoutes(network),
      ...statusRoutes({ network, client, source }),
      ...blocks.routes,
      ...accountRoutes({ network, client, source }),
      ...unavailable(UNSERVED_PATHS, "NOT_AVAILABLE"),
      ...unavailable(["/account/coins"], "COINS_NOT_SUPPORTED"),
    ],
    constructionRoutes: [
      ...offlineRoutes(network),
      ...onlineRoutes({ network, client, feePolicy: options.feePolicy }),
    ],
    readiness: createNodeReadiness(options),
    cachedReply: (request) => blocks.cachedReply(request),
  });
}

function exportCacheMetrics(source: BlockSource, metrics: Metrics): void {
  const names = {
    hits: "causeway_sidecar_block_cache_hits",
    misses: "causeway_sidecar_block_cache_misses",
    bytes: "causeway_sidecar_block_cache_bytes",
  } as const;
  metrics.gauge(names.hits, "Blocks served from memory since start.", [], (gauge) =>
    gauge.set(source.statistics().hits),
  );
  metrics.gauge(names.misses, "Blocks read from the node since start.", [], (gauge) =>
    gauge.set(source.statistics().misses),
  );
  metrics.gauge(names.bytes, "Memory held by finished blocks, bytes.", [], (gauge) =>
    gauge.set(source.statistics().bytes),
  );
}
