/** Entry of the withdrawal worker: the API, the hot wallet's lane and the queue in one process. */
import { KeyRing } from "../ledger/access/key-ring.js";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TokenEntry } from "../chain/token-list.js";
import { NETWORKS } from "../chain/networks.js";
import { type ChainIdentity, openLedger } from "../ledger/database.js";
import { loadExchangeTokens, readAgreedTokens } from "../ledger/assets/asset-registry.js";
import { findIdentity } from "../ledger/find-identity.js";
import { LedgerGuard } from "../ledger/recovery/ledger-guard.js";
import { createEvmClient, type EvmClient } from "../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../rpc-client/json-rpc.js";
import { systemClock } from "../runtime/process/clock.js";
import { loadConfig } from "../runtime/config/config.js";
import { createHttpServer, type HttpServer, type Readiness } from "../runtime/http/http-server.js";
import { type ProcessContext, runProcess, type Service } from "../runtime/process/lifecycle.js";
import type { Logger } from "../runtime/process/logger.js";
import { createMetrics } from "../runtime/process/metrics.js";
import { readSecretFile } from "../runtime/config/secret-file.js";
import { databaseUrl, redisUrl } from "../runtime/config/service-urls.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";
import { TaskGroup } from "../runtime/process/task.js";
import { AcceptQueue } from "./api/accept-queue.js";
import { createWithdrawalRoutes, type WithdrawalApiParts } from "./api/routes.js";
import { mapWithdrawalError } from "./api/api-errors.js";
import { type WorkerConfig, workerConfigFile } from "./config.js";
import { WorkerError } from "./errors.js";
import { decryptKeystore } from "../chain/keystore.js";
import { Lane } from "./lane/lane.js";
import type { LaneSettings } from "./lane/lane-context.js";
import { createLaneGuard } from "./lane/lane-guard.js";
import { createLaneLedger } from "./lane/lane-ledger.js";
import { createWakeQueue, type WakeQueue } from "./queue.js";
import { createKeySigner, type Signer } from "./signer.js";
import { createWalletNode } from "./lane/wallet-node.js";
import { registerWorkerFigures, registerWorkerHealth } from "./worker-metrics.js";

runProcess({ name: "withdrawal-worker", start });

async function start(context: ProcessContext): Promise<readonly Service[]> {
  const { home, env, portOffset, signal, log } = context;
  const config = loadConfig({ home, env, portOffset }, workerConfigFile);
  const settings = toLaneSettings(config);
  const signer = openSigner(home, settings);
  const apiKey = readSecretFile(join(home, "config", "api.key"));
  const entries = loadExchangeTokens(home);
  const url = databaseUrl({ home, env, portOffset });
  const timeoutMs = config.node["request-timeout-ms"];
  const rpc = createJsonRpcClient({ url: config.node["json-rpc-url"], timeoutMs });
  const client = createEvmClient(rpc);
  const identity = await findIdentity({
    ask: () => askIdentity(client, config, signal),
    isFinal: (error) => error instanceof WorkerError,
    url,
    log,
    signal,
  });
  const applicationName = "causeway-worker";
  const database = await openLedger({ url, log, signal, identity, applicationName });
  await checkLedger(home, { database, entries, log });
  const tokens = entries.map(({ symbol, contractAddress: contract }) => ({ symbol, contract }));
  const node = createWalletNode(rpc, identity);
  const { chainId } = identity;
  const clock = systemClock;
  const ledger = createLaneLedger(database);
  const guard = createLaneGuard({ database, wallet: signer.address, log });
  const parts = { ledger, guard, node, signer, chainId, settings, clock, log };
  const lane = new Lane(parts, randomUUID());
  const queue = createWakeQueue({
    databaseUrl: url,
    redisUrl: redisUrl(env),
    onWake: () => lane.wake(),
    log,
    signal,
  });
  const serving = { config, database, signer, tokens, lane, queue, apiKey, context };
  const server = createServer(serving);
  try {
    await server.start();
  } catch (error) {
    await queue.stop();
    await database.close();
    throw error;
  }
  const tasks = new TaskGroup({ signal, onFault: (_name, error) => context.fatal(error) });
  tasks.run("lane", (laneSignal) => lane.run(laneSignal));
  return [
    { name: "ledger", stop: () => database.close() },
    { name: "node client", stop: async () => rpc.close() },
    queue,
    { name: "lane", stop: () => tasks.stop() },
    server,
  ];
}

/** A ledger that is not what the home remembers is closed before anything is signed by it. */
async function checkLedger(
  home: string,
  parts: {
    readonly database: SqlDatabase;
    readonly entries: readonly TokenEntry[];
    readonly log: Logger;
  },
): Promise<void> {
  const { database, entries, log } = parts;
  try {
    await readAgreedTokens(database, entries);
    const guard = await LedgerGuard.open({ database, home, reporter: "withdrawal-worker" });
    const reason = await guard.check();
    if (reason !== undefined) log.error({ reason }, "the ledger is in recovery");
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Decrypts the hot wallet's key, once; it stays in this process. */
function openSigner(home: string, settings: LaneSettings): Signer {
  const keystore = readSecretFile(join(home, "config", "hot-wallet.json"));
  const passphrase = readSecretFile(join(home, "config", "hot-wallet.passphrase"));
  const { privateKey } = decryptKeystore(keystore, passphrase);
  return createKeySigner({
    privateKey,
    gasPriceCapAtoken: settings.gas.priceCapAtoken,
    gasLimitMax: settings.gas.limitMax,
  });
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

function createServer(parts: {
  readonly config: WorkerConfig;
  readonly database: SqlDatabase;
  readonly signer: Signer;
  readonly tokens: WithdrawalApiParts["tokens"];
  readonly lane: Lane;
  readonly queue: WakeQueue;
  readonly apiKey: string;
  readonly context: ProcessContext;
}): HttpServer {
  const { config, database, signer, tokens, lane, queue, apiKey, context } = parts;
  const metrics = createMetrics();
  const wallet = signer.address;
  registerWorkerHealth(metrics, {
    laneStatus: () => lane.status(),
    isQueueOpen: () => queue.isOpen(),
  });
  const keyedMetrics = createMetrics({ processMetrics: false });
  registerWorkerFigures(keyedMetrics, { database, wallet });
  return createHttpServer({
    name: "withdrawal-api",
    apiSpecPath: fileURLToPath(new URL("../openapi/withdrawal.yaml", import.meta.url)),
    listen: config.api.listen,
    routes: createWithdrawalRoutes({
      database,
      accept: new AcceptQueue(database, {
        onAccepted: () => queue.wake(),
        minimumAtoken: config.payouts["minimum-atoken"],
        clock: systemClock,
      }),
      wallet,
      tokens,
      onCancelled: () => queue.wake(),
    }),
    access: new KeyRing({
      database,
      fileKey: apiKey,
      service: "withdrawal-api",
      clock: systemClock,
    }),
    mapError: mapWithdrawalError,
    readiness: () => readinessOf(lane),
    log: context.log,
    metrics,
    keyedMetrics,
    bodyLimitBytes: config.api["body-limit-bytes"],
  });
}

/** `/ready`: frozen, behind or not connected, with the reason. */
function readinessOf(lane: Lane): Readiness {
  const { blockedReason } = lane.status();
  return blockedReason === undefined ? { ready: true } : { ready: false, reason: blockedReason };
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
