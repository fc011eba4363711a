/** The online server: Data API and Construction API over one node. */
import type { ChainAccounts } from "../chain/chain-accounts.js";
import type { Network } from "../chain/networks.js";
import type { EvmClient } from "../rpc-client/evm-client.js";
import type { Clock } from "../runtime/process/clock.js";
import type { HttpServer } from "../runtime/http/http-server.js";
import { createSidecarServer, type SidecarServerOptions } from "./app.js";
import { offlineRoutes } from "./construction-api/offline.js";
import type { FeePolicy } from "./construction-api/metadata.js";
import { onlineRoutes } from "./construction-api/online.js";
import { accountRoutes } from "./data-api/account.js";
import { createBalanceReader } from "./data-api/balance-reader.js";
import { blockRoutes } from "./data-api/block.js";
import { createBlockSource } from "./data-api/block-source.js";
import { callRoutes } from "./data-api/call.js";
import { eventRoutes } from "./data-api/events.js";
import { mempoolRoutes } from "./data-api/mempool.js";
import { networkRoutes } from "./data-api/network.js";
import { searchRoutes } from "./data-api/search.js";
import { statusRoutes } from "./data-api/status.js";
import { unavailable } from "./rosetta/endpoint.js";
import type { ChainIndex } from "./index/chain-index.js";
import { createTransactionSearch } from "./index/search/search-query.js";
import { createNodeReadiness } from "./node-readiness.js";
import type { TokenRegistry } from "./rosetta/token-registry.js";

/** What the online server is made of. */
export interface OnlineServerOptions
  extends Pick<SidecarServerOptions, "listen" | "log" | "metrics"> {
  readonly network: Network;
  readonly registry: TokenRegistry;
  /** For what clients ask, who may keep all its connections busy. */
  readonly client: EvmClient;
  /** For probes and `/network/status`, by which the kit knows that all goes on, as the index has one. */
  readonly ownClient: EvmClient;
  /** Followed by whoever made it. */
  readonly index: ChainIndex;
  readonly feePolicy: FeePolicy;
  /** As the chain's genesis names them; absent: the usual ones. */
  readonly chainAccounts?: () => ChainAccounts;
  /** Oldest newest block with which the server still calls itself ready. */
  readonly maxBlockAgeMs: number;
  readonly clock: Clock;
  /** The process's signal. */
  readonly signal: AbortSignal;
}

/** Makes the server; it asks the node nothing before its first request. */
export function createOnlineServer(options: OnlineServerOptions): HttpServer {
  const { network, registry, client, ownClient, listen, log, metrics, signal } = options;
  const { store, blocks: index, follower } = options.index;
  const source = createBlockSource({ client, blocks: index, follower, signal });
  const blocks = blockRoutes({ network, source });
  const balances = createBalanceReader({ client, index, log, metrics, signal });
  const tip = () => source.tip();
  const assertCurrent = () => follower.assertCurrent();
  const quarantineOf: typeof index.quarantineOf = (contract) => index.quarantineOf(contract);
  const placeOf: typeof index.placeOf = (hash) => index.placeOf(hash);
  const search = createTransactionSearch(store);
  return createSidecarServer({
    name: "sidecar-online",
    listen,
    log,
    metrics,
    dataRoutes: [
      ...networkRoutes(network, {
        accounts: options.chainAccounts,
        nodeVersion: () => follower.nodeVersion(),
      }),
      ...statusRoutes({ network, client: ownClient, source, index, follower }),
      ...blocks.routes,
      ...accountRoutes({ network, registry, source, index, balances }),
      ...mempoolRoutes({ network, registry, client, assertCurrent }),
      ...callRoutes({
        network,
        registry,
        client,
        blocks: source,
        quarantines: {
          quarantineOf,
          judgedTo: async () => (await source.newestIndexed()).index,
        },
        placeOf,
        assertCurrent,
      }),
      ...eventRoutes({ network, index, tip }),
      ...searchRoutes({ network, registry, index, tip, search }),
      ...unavailable(["/account/coins"], "COINS_NOT_SUPPORTED"),
    ],
    constructionRoutes: [
      ...offlineRoutes(network, registry),
      ...onlineRoutes({
        network,
        registry,
        client,
        feePolicy: options.feePolicy,
        quarantineOf,
        placeOf,
        judged: async () => void (await source.tip()),
        assertCurrent,
      }),
    ],
    readiness: createNodeReadiness({ ...options, client: ownClient, index, follower }),
    cachedReply: (request) => blocks.cachedReply(request),
  });
}
