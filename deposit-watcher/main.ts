/** Entry of the deposit watcher: the loop, the backfills and the deposit API in one process. */
import { KeyRing } from "../ledger/access/key-ring.js";
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BLOCKCHAIN_NAME, NETWORKS } from "../chain/networks.js";
import type { TokenEntry } from "../chain/token-list.js";
import { type ChainIdentity, openLedger } from "../ledger/database.js";
import { findIdentity } from "../ledger/find-identity.js";
import { createDataApiClient, type DataApiClient } from "../rpc-client/data-api/data-api-client.js";
import { createEvmClient, type EvmClient } from "../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../rpc-client/json-rpc.js";
import { subscribeNewHeads } from "../rpc-client/ws-subscription.js";
import { type ConfigSources, loadConfig } from "../runtime/config/config.js";
import { readTogether } from "../runtime/config/read-together.js";
import { createHttpServer, type HttpServer } from "../runtime/http/http-server.js";
import { type ProcessContext, runProcess, type Service } from "../runtime/process/lifecycle.js";
import { systemClock } from "../runtime/process/clock.js";
import { createMetrics, type Metrics } from "../runtime/process/metrics.js";
import { readApiKeyFile, readSecretFile } from "../runtime/config/secret-file.js";
import { assertServiceUrls, databaseUrl } from "../runtime/config/service-urls.js";
import { loadExchangeTokens } from "../ledger/assets/asset-registry.js";
import { openPatiently } from "../runtime/sql/opening.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";
import { TaskGroup } from "../runtime/process/task.js";
import { AddressBook } from "./address-book.js";
import {
  type AddressDerivation,
  createAddressDerivation,
} from "../chain/derivation/address-derivation.js";
import { createDepositRoutes, type DepositApiParts } from "./api/routes.js";
import { mapDepositError } from "./api/api-errors.js";
import { type WatcherConfig, watcherConfigFile } from "./config.js";
import { DepositError } from "./errors.js";
import { runLinkLoop } from "./link-loop.js";
import { createOperatorRoutes } from "./api/operator-routes.js";
import { isCatchingUp, readinessOf } from "./readiness.js";
import { registerReconcileFigures, runReconcileLoop } from "./reconcile-loop.js";
import { foundInHome, readHomeWallets } from "../ledger/wallets/home-wallets.js";
import type { NewWallet } from "../ledger/wallets/wallet-registry.js";
import type { LedgerGuard } from "../ledger/guard/ledger-guard.js";
import { openGuarded, type WatchStart } from "./watch-start.js";
import { TokenBook } from "./tokens/token-book.js";
import { Watcher } from "./watcher.js";
import { STALE_HEADS_ALLOWED } from "./chain-check.js";
import { createWatcherMetrics } from "./watcher-metrics.js";
import { type DispatcherSettings, WebhookDispatcher } from "./webhooks/dispatcher.js";
import { createWebhookRoutes } from "./webhooks/routes.js";
import { createWebhookMetrics } from "./webhooks/webhook-metrics.js";

runProcess({ name: "deposit-watcher", settings: readSettings, start });

function readSettings(sources: ConfigSources) {
  return readTogether({
    config: () => loadConfig(sources, watcherConfigFile),
    entries: () => loadExchangeTokens(sources.home),
    urls: () => assertServiceUrls(sources.env, ["DATABASE_URL"]),
  });
}

async function start(context: ProcessContext): Promise<readonly Service[]> {
  const { home, env, portOffset, signal, log } = context;
  const { config, entries } = readSettings({ home, env, portOffset });
  const derivation = createAddressDerivation(readSecretFile(join(home, "config", "deposit.xpub")));
  const wallets = readHomeWallets(home).map((wallet) => foundInHome(wallet, "deposit-watcher"));
  const apiKey = readApiKeyFile(join(home, "config", "api.key"));
  const url = databaseUrl({ home, env, portOffset });
  const clients = openClients(config);
  const { node } = clients;
  const identity = await findIdentity({
    ask: () => askIdentity(node, config, signal),
    isFinal: (error) => error instanceof DepositError,
    url,
    log,
    signal,
  });
  const startHeight = config.watcher["start-height"];
  const begin = { node, identity, startHeight, log, signal };
  const books = await openPatiently(
    () => openBooks(context, { url, wallets, entries, begin }),
    context,
  );
  const { database } = books;
  const metrics = createMetrics();
  const parts: RunningParts = {
    config,
    ...books,
    derivation,
    ...createLoops(context, { config, clients, identity, books, metrics }),
    node,
    apiKey,
    metrics,
    context,
  };
  const server = createServer(parts);
  try {
    await server.start();
  } catch (error) {
    await database.close();
    throw error;
  }
  const tasks = startTasks(parts);
  return [
    { name: "ledger", stop: () => database.close() },
    { name: "node clients", stop: async () => clients.close() },
    { name: "watcher", stop: () => tasks.stop() },
    server,
  ];
}

/** The watcher's node, the second one where the settings name one, and the Data API. */
interface Clients {
  readonly node: EvmClient;
  readonly secondNode: EvmClient | undefined;
  readonly source: DataApiClient;
  close(): void;
}

function openClients({ node, chain }: WatcherConfig): Clients {
  const timeoutMs = node["request-timeout-ms"];
  const rpc = createJsonRpcClient({ url: node["json-rpc-url"], timeoutMs });
  const secondUrl = node["second-json-rpc-url"];
  const secondRpc =
    secondUrl === "" ? undefined : createJsonRpcClient({ url: secondUrl, timeoutMs });
  const source = createDataApiClient({
    url: node["data-api-url"],
    network: { blockchain: BLOCKCHAIN_NAME, network: chain.network },
    timeoutMs,
  });
  return {
    node: createEvmClient(rpc),
    secondNode: secondRpc && createEvmClient(secondRpc),
    source,
    close() {
      rpc.close();
      secondRpc?.close();
      source.close();
    },
  };
}

/** What books blocks, and what tells webhooks of it; neither runs yet. */
function createLoops(
  { log }: ProcessContext,
  parts: {
    readonly config: WatcherConfig;
    readonly clients: Clients;
    readonly identity: ChainIdentity;
    readonly books: Books;
    readonly metrics: Metrics;
  },
): Pick<RunningParts, "watcher" | "chain" | "webhooks" | "owner"> {
  const { config, clients, identity, books, metrics } = parts;
  const { database, guard, tokens } = books;
  const { node, secondNode, source } = clients;
  const book = new AddressBook(tokens.assets());
  const watcher = new Watcher({
    database,
    guard,
    node,
    secondNode,
    source,
    book,
    tokens,
    identity,
    log,
    metrics: createWatcherMetrics(metrics),
    options: {
      pollIntervalMs: config.watcher["poll-interval-ms"],
      readsInFlight: config.watcher["reads-in-flight"],
      staleHeadsAllowed: STALE_HEADS_ALLOWED,
      leaseMs: config.watcher["lease-ms"],
      owner: `${hostname()}:${process.pid}:${randomUUID()}`,
    },
  });
  const owner = randomUUID();
  const webhooks = new WebhookDispatcher({
    database,
    guard,
    owner,
    settings: webhookSettings(config),
    metrics: createWebhookMetrics(metrics, database),
    clock: systemClock,
    log,
  });
  registerReconcileFigures(metrics, { database, clock: systemClock });
  return { watcher, chain: { node, source, watched: book }, webhooks, owner };
}

/** The ledger as this process works with it. */
interface Books {
  readonly database: SqlDatabase;
  readonly guard: LedgerGuard;
  readonly tokens: TokenBook;
}

/** Opens ledger, guard and tokens; a fault leaves nothing open. */
async function openBooks(
  { home, log, signal, busy }: ProcessContext,
  parts: {
    readonly url: string;
    readonly wallets: readonly NewWallet[];
    readonly entries: readonly TokenEntry[];
    readonly begin: Omit<WatchStart, "database"> & { readonly node: EvmClient };
  },
): Promise<Books> {
  const { url, wallets, entries, begin } = parts;
  const { node, identity } = begin;
  const applicationName = "causeway-watcher";
  const database = await openLedger({ url, log, signal, identity, applicationName, busy });
  try {
    const guard = await openGuarded(home, wallets, { ...begin, database });
    const tokens = await TokenBook.open({ database, node, log }, entries);
    return { database, guard, tokens };
  } catch (error) {
    await database.close();
    throw error;
  }
}

interface RunningParts {
  readonly config: WatcherConfig;
  readonly database: SqlDatabase;
  readonly guard: LedgerGuard;
  readonly derivation: AddressDerivation;
  readonly chain: DepositApiParts["chain"];
  readonly tokens: TokenBook;
  readonly watcher: Watcher;
  readonly webhooks: WebhookDispatcher;
  /** Random name of the process' life, for leases. */
  readonly owner: string;
  readonly node: EvmClient;
  readonly apiKey: string;
  readonly metrics: Metrics;
  readonly context: ProcessContext;
}

function createServer(parts: RunningParts): HttpServer {
  const { config, database, guard, derivation, chain, tokens, watcher } = parts;
  const { apiKey, metrics, context } = parts;
  const deposits = createDepositRoutes({
    database,
    derivation,
    chain,
    get tokens() {
      return tokens.tokens;
    },
    guard,
    keyFromIndex: config.api["deposit-key-from-index"],
    headHeight: () => watcher.status.headHeight,
    onRegistered: () => watcher.wakeBackfill(),
  });
  const webhooks = createWebhookRoutes({
    database,
    allowLocal: webhookSettings(config).allowLocal,
    onChanged: () => parts.webhooks.wake(),
  });
  const operators = createOperatorRoutes({ database, clock: systemClock });
  return createHttpServer({
    name: "deposit-api",
    apiSpecPath: fileURLToPath(new URL("../openapi/deposit.yaml", import.meta.url)),
    listen: config.api.listen,
    routes: [...deposits, ...webhooks, ...operators],
    access: new KeyRing({ database, fileKey: apiKey, service: "deposit-api", clock: systemClock }),
    mapError: mapDepositError,
    readiness: () =>
      readinessOf(watcher.status, config.watcher["max-lag-blocks"], systemClock.monotonicMs()),
    log: context.log,
    metrics,
    bodyLimitBytes: config.api["body-limit-bytes"],
  });
}

function startTasks(parts: RunningParts): TaskGroup {
  const { config, watcher, webhooks, context, database, owner, metrics, node } = parts;
  const { log } = context;
  const background = { database, owner, log, clock: systemClock };
  const tasks = new TaskGroup({
    signal: context.signal,
    onFault: (_name, error) => context.fatal(error),
  });
  tasks.run("blocks", (signal) => watcher.run(signal));
  tasks.run("backfills", (signal) => watcher.runBackfills(signal));
  tasks.run("webhooks", (signal) => webhooks.run(signal));
  tasks.run("chain of hashes", (signal) => runLinkLoop({ ...background, metrics }, signal));
  const intervalMs = config.watcher["reconcile-interval-s"] * 1_000;
  const maxLagBlocks = config.watcher["max-lag-blocks"];
  const isBehind = () => isCatchingUp(watcher.status, maxLagBlocks);
  const reconciling = { ...background, node, intervalMs, maxLagBlocks, isCatchingUp: isBehind };
  tasks.run("reconcile", (signal) => runReconcileLoop(reconciling, signal));
  tasks.run("new heads", async (signal) => {
    const url = config.node["web-socket-url"];
    for await (const head of subscribeNewHeads({ url, signal })) watcher.wake(head.height);
  });
  return tasks;
}

function webhookSettings({ webhooks }: WatcherConfig): DispatcherSettings {
  return {
    allowLocal: webhooks["allow-local"],
    pollIntervalMs: webhooks["poll-interval-ms"],
    timeoutMs: webhooks["timeout-ms"],
  };
}

async function askIdentity(
  node: EvmClient,
  config: WatcherConfig,
  signal: AbortSignal,
): Promise<ChainIdentity> {
  const [chainId, genesisHash] = await Promise.all([
    node.chainId({ signal }),
    node.genesisHash({ signal }),
  ]);
  const expected = NETWORKS[config.chain.network].evmChainId;
  if (chainId !== expected) {
    throw new DepositError(
      "NOT_READY",
      `the node serves chain ${chainId}, chain.network = "${config.chain.network}" is ${expected}`,
    );
  }
  return { chainId, genesisHash };
}
