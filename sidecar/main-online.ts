/** Process entry of the Data API and the online Construction API. */
import { join } from "node:path";
import { NETWORKS } from "../chain/networks.js";
import { KnownAccounts } from "../rpc-client/chain-accounts.js";
import { createEvmClient, type EvmClient } from "../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../rpc-client/json-rpc.js";
import { subscribeNewHeads } from "../rpc-client/ws-subscription.js";
import { compileResponseCheck } from "../runtime/http/api-schema.js";
import { systemClock } from "../runtime/process/clock.js";
import type { HttpServer } from "../runtime/http/http-server.js";
import { type ProcessContext, runProcess, type Service } from "../runtime/process/lifecycle.js";
import type { Logger } from "../runtime/process/logger.js";
import { createMetrics, type Metrics } from "../runtime/process/metrics.js";
import { readSettings } from "./settings.js";
import { apiFile } from "./app.js";
import { type ChainIndex, createChainIndex } from "./index/chain-index.js";
import type { IndexFollower } from "./index/follower.js";
import { createOnlineServer } from "./online-server.js";

const MIB = 1024 * 1024;

runProcess({ name: "sidecar-online", settings: readSettings, start });

async function start(context: ProcessContext): Promise<readonly Service[]> {
  const { home, env, portOffset, log, signal } = context;
  const settings = readSettings({ home, env, portOffset });
  const { config } = settings;
  const node = {
    url: config.node.url,
    timeoutMs: config.node["timeout-ms"],
    maxResponseBytes: config.node["max-response-mib"] * MIB,
  };
  // Anybody may ask the server: the index and the probes must not wait for a connection behind them.
  const ownRpc = createJsonRpcClient(node);
  const ownClient = createEvmClient(ownRpc);
  const clientsRpc = createJsonRpcClient(node);
  const metrics = createMetrics();
  const index = openIndex(context, settings, { client: ownClient, metrics });
  const accounts = new KnownAccounts(ownClient);
  const server = createServer(context, settings, {
    client: createEvmClient(clientsRpc),
    ownClient,
    index,
    accounts,
    metrics,
  });
  await index.follower.open();
  try {
    await server.start();
  } catch (error) {
    await index.store.close();
    throw error;
  }
  const following = Promise.all([
    index.follower.run(),
    accounts.learn({ signal, log }),
    wakeByNewHeads(index.follower, { url: config.node["ws-url"], log, signal }),
  ]);
  return [
    {
      name: "node clients",
      stop: async () => [ownRpc, clientsRpc].forEach((rpc) => rpc.close()),
    },
    {
      name: "index",
      async stop() {
        try {
          await following;
        } finally {
          // The server behind it has ended: nobody reads any more.
          await index.store.close();
        }
      },
    },
    server,
  ];
}

type Settings = ReturnType<typeof readSettings>;

function openIndex(
  { home, log, signal }: ProcessContext,
  { config, registry }: Settings,
  { client, metrics }: { readonly client: EvmClient; readonly metrics: Metrics },
): ChainIndex {
  return createChainIndex({
    folder: join(home, "data", "sidecar"),
    network: NETWORKS[config[""].network],
    client,
    registry,
    cacheBytes: config.cache["blocks-mib"] * MIB,
    storedBlocksBytes: config.index["stored-blocks-mib"] * MIB,
    verifyHolders: config.index["verify-holders"],
    checkReply: compileResponseCheck(apiFile("data"), "/block", "post"),
    log,
    clock: systemClock,
    metrics,
    signal,
  });
}

function createServer(
  { log, signal }: ProcessContext,
  { config, registry }: Settings,
  parts: {
    readonly client: EvmClient;
    readonly ownClient: EvmClient;
    readonly index: ChainIndex;
    readonly accounts: KnownAccounts;
    readonly metrics: Metrics;
  },
): HttpServer {
  const { client, ownClient, index, accounts, metrics } = parts;
  return createOnlineServer({
    network: NETWORKS[config[""].network],
    registry,
    client,
    ownClient,
    index,
    listen: config.online.listen,
    feePolicy: {
      gasMarginPercent: config.construction["gas-margin-percent"],
      minimumGasPriceAtoken: config.construction["minimum-gas-price-atoken"],
    },
    maxBlockAgeMs: config.node["max-block-age-ms"],
    chainAccounts: () => accounts.current,
    clock: systemClock,
    log,
    metrics,
    signal,
  });
}

/** A new head makes the follower look before its next look is due; nothing else depends on it. */
async function wakeByNewHeads(
  follower: Pick<IndexFollower, "wake">,
  options: { readonly url: string; readonly log: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const { url, log, signal } = options;
  const onDisconnect = (reason: string) => log.debug({ reason }, "new heads are not announced");
  for await (const { height } of subscribeNewHeads({ url, signal, onDisconnect })) {
    log.debug({ height }, "a new head was announced");
    follower.wake();
  }
}
