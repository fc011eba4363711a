/** Entry of the withdrawal worker: the API, the hot wallet's lane and the queue in one process. */
import { KeyRing } from "../ledger/access/key-ring.js";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ChainAccounts } from "../chain/chain-accounts.js";
import type { Address } from "../chain/address.js";
import { createAddressDerivation } from "../chain/derivation/address-derivation.js";
import type { TokenEntry } from "../chain/token-list.js";
import { NETWORKS } from "../chain/networks.js";
import { type ChainIdentity, openLedger } from "../ledger/database.js";
import { loadExchangeTokens, readAgreedTokens } from "../ledger/assets/asset-registry.js";
import { findIdentity } from "../ledger/find-identity.js";
import { killSwitchPath } from "../ledger/policy/policy-paths.js";
import { stops } from "../ledger/kill-switch/kill-switch-level.js";
import { foundInHome, readHomeWallets } from "../ledger/wallets/home-wallets.js";
import { registerWallets } from "../ledger/wallets/wallet-registry.js";
import { LedgerGuard } from "../ledger/guard/ledger-guard.js";
import { KnownAccounts } from "../rpc-client/chain-accounts.js";
import { createEvmClient, type EvmClient } from "../rpc-client/evm-client.js";
import { createJsonRpcClient, type JsonRpcClient } from "../rpc-client/json-rpc.js";
import { systemClock } from "../runtime/process/clock.js";
import { type ConfigSources, loadConfig } from "../runtime/config/config.js";
import { readTogether } from "../runtime/config/read-together.js";
import type { KeyedRoute } from "../runtime/http/http-route.js";
import { createHttpServer, type HttpServer, type Readiness } from "../runtime/http/http-server.js";
import { type ProcessContext, runProcess, type Service } from "../runtime/process/lifecycle.js";
import type { Logger } from "../runtime/process/logger.js";
import { createMetrics } from "../runtime/process/metrics.js";
import { TaskGroup } from "../runtime/process/task.js";
import { readApiKeyFile, readSecretFile } from "../runtime/config/secret-file.js";
import { assertServiceUrls, databaseUrl, redisUrl } from "../runtime/config/service-urls.js";
import { openPatiently } from "../runtime/sql/opening.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";
import { AcceptQueue } from "./api/accept-queue.js";
import { createWithdrawalRoutes } from "./api/routes.js";
import { createPolicyRoutes } from "./api/policy-routes.js";
import { createTreasuryRoutes } from "./api/treasury-routes.js";
import { createWalletRoutes } from "./api/wallet-routes.js";
import { mapWithdrawalError } from "./api/api-errors.js";
import { oddSettings, type WorkerConfig, workerConfigFile } from "./config.js";
import { WorkerError } from "./errors.js";
import { ChainLook } from "./lane/chain-look.js";
import { Lane } from "./lane/lane.js";
import type { LaneSettings } from "./lane/lane-context.js";
import { createLaneGuard } from "./lane/lane-guard.js";
import { createLaneLedger, type LaneLedger } from "./lane/lane-ledger.js";
import { ShownNonces } from "./lane/shown-nonces.js";
import { createWakeQueue, type WakeQueue } from "./queue.js";
import { createKillSwitch, ensureKillSwitchFile, fileSwitch, HomeSwitch } from "./kill-switch.js";
import { createScreener, type Screener } from "./lane/slots/screening.js";
import { Lanes } from "./lanes.js";
import { WalletKeys } from "./wallet-keys.js";
import { createWalletNode, type WalletNode } from "./lane/wallet-node.js";
import { PolicyKeeper } from "./policy-keeper.js";
import { SignerTotals } from "./signers/signer-totals.js";
import { registerWorkerFigures, registerWorkerHealth } from "./worker-metrics.js";

runProcess({ name: "withdrawal-worker", settings: readSettings, start });

function readSettings(sources: ConfigSources) {
  return readTogether({
    config: () => loadConfig(sources, workerConfigFile),
    entries: () => loadExchangeTokens(sources.home),
    urls: () => assertServiceUrls(sources.env, ["DATABASE_URL", "REDIS_URL"]),
  });
}

async function start(context: ProcessContext): Promise<readonly Service[]> {
  const { home, env, portOffset, log } = context;
  const { config, entries } = readSettings({ home, env, portOffset });
  const settings = toLaneSettings(config);
  for (const odd of oddSettings(config)) log.warn({ ...odd }, "settings contradict each other");
  const apiKey = readApiKeyFile(join(home, "config", "api.key"));
  const url = databaseUrl({ home, env, portOffset });
  const clients = openClients(config);
  const { chainAccounts } = clients;
  const keys = openKeys(context, { config, settings, entries, chainAccounts });
  const identity = await learnIdentity(context, { config, clients, url });
  const shown = new ShownNonces();
  const books = await openPatiently(
    () => openBooks(context, { url, identity, entries, shown }),
    context,
  );
  const { database } = books;
  const switchFile = killSwitchPath(home);
  const homeSwitch = new HomeSwitch({ sql: database, file: switchFile, log });
  const screener = createScreener(log);
  const ledger = createLaneLedger(database, shown, books.guard);
  const node = createWalletNode(clients.rpc, identity, { chainAccounts: clients.accounts });
  const look = new ChainLook({ context: { ledger, node, log }, shown, signal: context.signal });
  const payers = { books, clients, identity, keys, settings, ledger, node, screener };
  const lanes = createLanes(context, payers);
  const queue = openQueue(context, { url, lanes });
  const api = { config, entries, apiKey, switchFile, homeSwitch, shown, look };
  const server = createServer({ ...api, books, chainAccounts, identity, lanes, queue, context });
  try {
    await server.start();
  } catch (error) {
    await queue.stop();
    await database.close();
    throw error;
  }
  lanes.start();
  const tasks = startTasks(context, { books, homeSwitch, clients, look });
  return [
    { name: "ledger", stop: () => database.close() },
    { name: "policy", stop: () => tasks.stop() },
    { name: "node clients", stop: async () => clients.close() },
    { name: "signer", stop: () => keys.close() },
    { name: "screening", stop: async () => screener.close() },
    queue,
    lanes,
    server,
  ];
}

/** The worker's own node, the second one where the settings name one, and what they have told. */
interface Clients {
  readonly rpc: JsonRpcClient;
  readonly secondRpc: JsonRpcClient | undefined;
  readonly evm: EvmClient;
  readonly accounts: KnownAccounts;
  readonly chainAccounts: () => ChainAccounts;
  close(): void;
}

function openClients({ node }: WorkerConfig): Clients {
  const timeoutMs = node["request-timeout-ms"];
  const rpc = createJsonRpcClient({ url: node["json-rpc-url"], timeoutMs });
  const secondUrl = node["second-json-rpc-url"];
  const secondRpc =
    secondUrl === "" ? undefined : createJsonRpcClient({ url: secondUrl, timeoutMs });
  const evm = createEvmClient(rpc);
  const accounts = new KnownAccounts(evm);
  return {
    rpc,
    secondRpc,
    evm,
    accounts,
    chainAccounts: () => accounts.current,
    close() {
      rpc.close();
      secondRpc?.close();
    },
  };
}

/** Which chain the ledger is about; the node that tells it is asked for the chain's own accounts, too. */
function learnIdentity(
  { signal, log }: ProcessContext,
  parts: { readonly config: WorkerConfig; readonly clients: Clients; readonly url: string },
): Promise<ChainIdentity> {
  const { config, clients, url } = parts;
  return findIdentity({
    ask: async () => {
      const found = await askIdentity(clients.evm, config, signal);
      await clients.accounts.ask({ signal });
      return found;
    },
    isFinal: (error) => error instanceof WorkerError,
    url,
    log,
    signal,
  });
}

/** What pays: a lane for each wallet that this process has a key of. */
function createLanes(
  context: ProcessContext,
  parts: {
    readonly books: Books;
    readonly clients: Clients;
    readonly identity: ChainIdentity;
    readonly keys: WalletKeys;
    readonly settings: LaneSettings;
    readonly ledger: LaneLedger;
    readonly node: WalletNode;
    readonly screener: Screener;
  },
): Lanes {
  const { home, log, signal } = context;
  const { books, clients, identity, keys, settings, ledger, node, screener } = parts;
  const { database, policy } = books;
  const killSwitch = createKillSwitch({ sql: database, file: killSwitchPath(home) });
  const common = {
    policy,
    killSwitch,
    screener,
    ledger,
    node,
    secondNode: clients.secondRpc && createWalletNode(clients.secondRpc, identity),
    chainId: identity.chainId,
    settings,
    clock: systemClock,
    log,
  };
  const owner = `${hostname()}:${process.pid}:${randomUUID()}`;
  return new Lanes({
    database,
    keys,
    createLane(wallet, key) {
      const guard = createLaneGuard({ database, wallet, log });
      return new Lane(Object.assign(key, { ...common, guard }), owner);
    },
    log,
    signal,
    onFault: (error) => context.fatal(error),
  });
}

/** Tells lanes of this and of other processes that there is something to do. */
function openQueue(
  { env, log, signal }: ProcessContext,
  { url, lanes }: { readonly url: string; readonly lanes: Lanes },
): WakeQueue {
  return createWakeQueue({
    databaseUrl: url,
    redisUrl: redisUrl(env),
    onWake: () => lanes.wake(),
    log,
    signal,
  });
}

function startTasks(
  context: ProcessContext,
  parts: {
    readonly books: Books;
    readonly homeSwitch: HomeSwitch;
    readonly clients: Clients;
    readonly look: ChainLook;
  },
): TaskGroup {
  const { signal, log } = context;
  const { books, homeSwitch, clients, look } = parts;
  const { policy, guard } = books;
  const tasks = new TaskGroup({ signal, onFault: (_name, error) => context.fatal(error) });
  tasks.run("first look at the chain", (taskSignal) => look.first({ signal: taskSignal }));
  tasks.run("policy", (taskSignal) => policy.follow({ signal: taskSignal }));
  tasks.run("home's kill switch", (taskSignal) => homeSwitch.follow({ signal: taskSignal }));
  // What this process has told of may be lost while another one's lane holds the wallets.
  tasks.run("ledger", (taskSignal) => guard.follow({ signal: taskSignal, log }));
  // Of a node that was away when the ledger told which chain it is.
  tasks.run("chain accounts", (ending) => clients.accounts.learn({ signal: ending, log }));
  return tasks;
}

/** The ledger as this process works with it, and the policy in force. */
interface Books {
  readonly database: SqlDatabase;
  readonly policy: PolicyKeeper;
  readonly guard: LedgerGuard;
}

/** Opens ledger, guard and policy; a fault leaves nothing open. */
async function openBooks(
  { home, log, signal, busy }: ProcessContext,
  parts: {
    readonly url: string;
    readonly identity: ChainIdentity;
    readonly entries: readonly TokenEntry[];
    readonly shown: ShownNonces;
  },
): Promise<Books> {
  const { url, identity, entries, shown } = parts;
  const applicationName = "causeway-worker";
  const database = await openLedger({ url, log, signal, identity, applicationName, busy });
  try {
    await readAgreedTokens(database, entries);
    const guard = await checkLedger(home, database, log);
    // Every keystore of the home is a wallet of the ledger, from the first start that sees it.
    const found = readHomeWallets(home).map((wallet) => foundInHome(wallet, "withdrawal-worker"));
    await registerWallets(database, found);
    await ensureKillSwitchFile(killSwitchPath(home), database);
    const clock = systemClock;
    const policy = await PolicyKeeper.open({
      database,
      home,
      clock,
      log,
      shownNonces: shown.all,
      wasChainAsked: () => shown.wasChainAsked,
    });
    return { database, policy, guard };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/**
 * A ledger that is not what the home remembers is closed before anything is signed by it. It is remembered
 * here, too: the watcher may have another home, and come later.
 */
async function checkLedger(home: string, database: SqlDatabase, log: Logger): Promise<LedgerGuard> {
  const guard = await LedgerGuard.open({ database, home, reporter: "withdrawal-worker" });
  const reason = await guard.check();
  if (reason !== undefined) log.error({ reason }, "the ledger is in recovery");
  return guard;
}

/** The wallets' signers, with rules of their own: of the ledger they know nothing. */
function openKeys(
  { home, log }: ProcessContext,
  parts: {
    readonly config: WorkerConfig;
    readonly settings: LaneSettings;
    readonly entries: readonly TokenEntry[];
    readonly chainAccounts: () => ChainAccounts;
  },
): WalletKeys {
  const { config, settings, entries, chainAccounts } = parts;
  return new WalletKeys({
    home,
    settings: config.signer,
    chainId: NETWORKS[config.chain.network].evmChainId,
    limits: {
      gasPriceCapAtoken: settings.gas.priceCapAtoken,
      gasLimitMax: settings.gas.limitMax,
      feePerPayoutAtoken: settings.gas.feePerPayoutAtoken,
    },
    depositAddressAt: depositAddresses(home),
    totals: new SignerTotals(join(home, "data", "signer-totals"), systemClock),
    tokens: entries,
    chainAccounts,
    log,
  });
}

/** Addresses by index, where the home has the public key; it can spend from none. */
function depositAddresses(home: string): ((index: number) => Address) | undefined {
  const file = join(home, "config", "deposit.xpub");
  if (!existsSync(file)) return undefined;
  const derivation = createAddressDerivation(readSecretFile(file));
  return (index) => derivation.addressAt(index);
}

function toLaneSettings(config: WorkerConfig): LaneSettings {
  return {
    batchSize: config.worker["batch-size"],
    maxLiveSlots: config.worker["max-in-flight"],
    scanIntervalMs: config.worker["scan-interval-ms"],
    pollIntervalMs: config.worker["poll-interval-ms"],
    rebroadcastIntervalMs: config.worker["rebroadcast-interval-ms"],
    retryDelayMs: config.worker["retry-delay-ms"],
    receiptPatienceMs: config.worker["receipt-patience-ms"],
    leaseMs: config.worker["lease-ms"],
    gas: {
      marginPercent: config.gas["margin-percent"],
      limitMax: config.gas["limit-max"],
      priceFloorAtoken: config.gas["price-floor-atoken"],
      priceCapAtoken: config.gas["price-cap-atoken"],
      feePerPayoutAtoken: config.gas["fee-per-payout-max-atoken"],
      feePerDayAtoken: config.gas["fee-per-day-max-atoken"],
      codeGasInFlight: config.gas["contracts-in-flight-gas"],
    },
    stall: {
      repriceAfterMs: config.worker["reprice-after-ms"],
      giveUpAfterMs: config.worker["give-up-after-ms"],
      alarmAfterMs: config.worker["stall-alarm-ms"],
    },
    failures: {
      failureFeeAtoken: config.payouts["failure-fee-atoken"],
      maxCount: config.payouts["failures-max"],
      windowMs: config.payouts["failures-window-ms"],
    },
  };
}

/** What the API answers from. */
interface ApiParts {
  readonly config: WorkerConfig;
  readonly entries: readonly TokenEntry[];
  readonly apiKey: string;
  readonly switchFile: string;
  readonly homeSwitch: HomeSwitch;
  readonly shown: ShownNonces;
  readonly look: ChainLook;
  readonly books: Books;
  readonly chainAccounts: () => ChainAccounts;
  readonly identity: ChainIdentity;
  readonly lanes: Lanes;
  readonly queue: WakeQueue;
  readonly context: ProcessContext;
}

function createServer(parts: ApiParts): HttpServer {
  const { config, apiKey, homeSwitch, books, lanes, queue, context } = parts;
  const { database, policy, guard } = books;
  const metrics = createMetrics();
  registerWorkerHealth(metrics, {
    laneStatuses: () => lanes.statuses(),
    isQueueOpen: () => queue.isOpen(),
  });
  const keyedMetrics = createMetrics({ processMetrics: false });
  registerWorkerFigures(keyedMetrics, database);
  return createHttpServer({
    name: "withdrawal-api",
    apiSpecPath: fileURLToPath(new URL("../openapi/withdrawal.yaml", import.meta.url)),
    listen: config.api.listen,
    routes: createRoutes(parts),
    access: new KeyRing({
      database,
      fileKey: apiKey,
      service: "withdrawal-api",
      clock: systemClock,
    }),
    mapError: mapWithdrawalError,
    readiness: () =>
      readinessOf([policy.trouble(), homeSwitch.trouble(), lanes.blockedReason(), guard.trouble]),
    log: context.log,
    metrics,
    keyedMetrics,
    bodyLimitBytes: config.api["body-limit-bytes"],
  });
}

function createRoutes(parts: ApiParts): readonly KeyedRoute[] {
  const { config, entries, switchFile, shown, look, books, chainAccounts, lanes, queue } = parts;
  const { signal, log } = parts.context;
  const { database, policy, guard } = books;
  const { chainId } = parts.identity;
  // The queue is for lanes of other processes.
  const wake = () => {
    lanes.wake();
    queue.wake();
  };
  const accept = new AcceptQueue(database, {
    onAccepted: wake,
    minimumAtoken: config.payouts["minimum-atoken"],
    policy,
    isStopped: () => stops(fileSwitch(switchFile).level, "stop-new"),
    clock: systemClock,
    signal,
  });
  return [
    ...createWithdrawalRoutes({
      database,
      accept,
      tokens: entries.map(({ symbol, contractAddress: contract }) => ({ symbol, contract })),
      policy,
      chainId,
      chainAccounts,
      shownNonces: shown.all,
      look,
      guard,
      onCancelled: wake,
    }),
    ...createWalletRoutes(database),
    ...createPolicyRoutes({ database, policy, chainId, switchFile, clock: systemClock, log }),
    ...createTreasuryRoutes(database),
  ];
}

/** `/ready`: frozen, stopped by this home alone, behind or not connected, with the first reason. */
function readinessOf(reasons: readonly (string | undefined)[]): Readiness {
  const reason = reasons.find((one) => one !== undefined);
  return reason === undefined ? { ready: true } : { ready: false, reason };
}

async function askIdentity(
  node: EvmClient,
  config: WorkerConfig,
  signal: AbortSignal,
): Promise<ChainIdentity> {
  const chainId = await node.chainId({ signal });
  const genesisHash = await node.genesisHash({ signal });
  const expected = NETWORKS[config.chain.network].evmChainId;
  if (chainId !== expected) {
    throw new WorkerError(
      "WRONG_NODE",
      `the node serves chain ${chainId}, chain.network = "${config.chain.network}" is ${expected}`,
    );
  }
  return { chainId, genesisHash };
}
