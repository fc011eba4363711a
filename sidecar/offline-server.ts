/** The offline server: everything that needs no network, and a listed refusal for the rest. */
import type { Network } from "../chain/networks.js";
import type { HttpServer } from "../runtime/http/http-server.js";
import { createSidecarServer, type SidecarServerOptions } from "./app.js";
import { offlineRoutes } from "./construction-api/offline.js";
import { networkRoutes } from "./data-api/network.js";
import { unavailable } from "./rosetta/endpoint.js";
import type { TokenRegistry } from "./rosetta/token-registry.js";

/** Paths that need a node. */
const ONLINE_DATA_PATHS = [
  "/network/status",
  "/block",
  "/block/transaction",
  "/mempool",
  "/mempool/transaction",
  "/account/balance",
  "/account/coins",
  "/call",
  "/events/blocks",
  "/search/transactions",
];

const ONLINE_CONSTRUCTION_PATHS = ["/construction/metadata", "/construction/submit"];

/** Makes the server; it never opens a connection and is always ready. */
export function createOfflineServer(
  options: Pick<SidecarServerOptions, "listen" | "log" | "metrics"> & {
    network: Network;
    registry: TokenRegistry;
  },
): HttpServer {
  const { network, registry, listen, log, metrics } = options;
  return createSidecarServer({
    name: "sidecar-offline",
    listen,
    log,
    metrics,
    dataRoutes: [
      ...networkRoutes(network),
      ...unavailable(ONLINE_DATA_PATHS, "UNAVAILABLE_OFFLINE"),
    ],
    constructionRoutes: [
      ...offlineRoutes(network, registry),
      ...unavailable(ONLINE_CONSTRUCTION_PATHS, "UNAVAILABLE_OFFLINE"),
    ],
    readiness: () => ({ ready: true }),
  });
}
