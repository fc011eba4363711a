/** Entry of the indexer: the writer and the REST API in one process. */
import { NETWORKS } from "../chain/networks.js";
import { errorMessage } from "../chain/errors.js";
import { KnownAccounts } from "../rpc-client/chain-accounts.js";
import { createEvmClient, type EvmClient } from "../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../rpc-client/json-rpc.js";
import { subscribeNewHeads } from "../rpc-client/ws-subscription.js";
import { type ConfigSources, loadConfig } from "../runtime/config/config.js";
import { readTogether } from "../runtime/config/read-together.js";
import { assertServiceUrls, databaseUrl } from "../runtime/config/service-urls.js";
import { systemClock } from "../runtime/process/clock.js";
import type { Logger } from "../runtime/process/logger.js";
import { type ProcessContext, runProcess, type Service } from "../runtime/process/lifecycle.js";
import { createMetrics } from "../runtime/process/metrics.js";
import { retry, TaskGroup } from "../runtime/process/task.js";
import { assertHoldsText } from "../runtime/sql/encoding.js";
import { openDatabase, type SqlDatabase } from "../runtime/sql/sql.js";
import { READ_CONNECTIONS, readsInTurns } from "./api/index-reads.js";
import type { IndexerApi } from "./api/start.js";
import { indexerConfigFile } from "./config.js";
import { IndexerError } from "./errors.js";
import { IndexFollower } from "./ingest/follower.js";
import { readIdentity } from "./ingest/node-identity.js";
import { type IndexIdentity, readStoredIdentity } from "./store/progress.js";
import { LIVE_SCHEMA } from "./store/schema.js";
import { assertServerVersion } from "./store/server-version.js";

runProcess({ name: "indexer", settings: readSettings, start });

function readSettings(sources: ConfigSources) {
  return readTogether({
    config: () => loadConfig(sources, indexerConfigFile),
    urls: () => assertServiceUrls(sources.env, ["DATABASE_URL"]),
  });
}

async function start(context: ProcessContext): Promise<readonly Service[]> {
  const { home, env, portOffset, signal, log } = context;
  const { config } = readSettings({ home, env, portOffset });
  const url = databaseUrl({ home, env, portOffset });
  const rpc = createJsonRpcClient({
    url: config.node["json-rpc-url"],
    timeoutMs: config.node["request-timeout-ms"],
  });
  const node = createEvmClient(rpc);
  const database = await openTables(url, context);
  const closers: Service[] = [
    { name: "database", stop: () => database.close() },
    { name: "node client", stop: async () => rpc.close() },
  ];
  try {
    const expected = NETWORKS[config.chain.network].evmChainId;
    const identity = await findIdentity(node, { log, signal, expected }, () =>
      readStoredIdentity(database, LIVE_SCHEMA),
    );
    const metrics = createMetrics();
    let api: IndexerApi | undefined;
    const follower = new IndexFollower({
      databaseUrl: url,
      schema: LIVE_SCHEMA,
      node,
      identity,
      readIdentity: (options) => readIdentity(node, expected, options),
      log,
      metrics,
      pollIntervalMs: config.indexer["poll-interval-ms"],
      batchBytes: config.indexer["batch-mib"] * 1024 * 1024,
      verifyPerRound: config.indexer["verify-per-round"],
      clock: systemClock,
      onBlocks: () => api?.wake(),
    });
    const accounts = new KnownAccounts(node);
    const webSocketUrl = config.node["web-socket-url"];
    const tasks = startTasks(context, { follower, accounts, webSocketUrl });
    closers.push({ name: "writer", stop: () => tasks.stop() });
    // Behind the writer's first question: the node makes its answer while this is loaded.
    const { startApi } = await import("./api/start.js");
    const reads = {
      database: readsInTurns(database),
      node,
      chainId: identity.chainId,
      burnAddress: () => accounts.told?.burnAddress ?? identity.burnAddress,
      status: () => follower.status(),
    };
    const serving = { config, home, databaseUrl: url, log, metrics, signal };
    api = await startApi({ context: reads, ...serving });
    return [...closers, ...api.services];
  } catch (error) {
    for (const closer of closers.toReversed()) await closer.stop();
    throw error;
  }
}

/** The database of the index; its tables are the writer's to make. */
function openTables(url: string, { log, signal }: ProcessContext): Promise<SqlDatabase> {
  return openDatabase({
    url,
    migrations: [],
    applicationName: "causeway-indexer",
    // The writer has one of its own.
    poolSize: READ_CONNECTIONS,
    log,
    signal,
    keepsPlans: true,
    async beforeMigrating(sql) {
      await assertHoldsText(sql);
      await assertServerVersion(sql);
      return false;
    },
  });
}

function startTasks(
  context: ProcessContext,
  parts: {
    readonly follower: IndexFollower;
    readonly accounts: KnownAccounts;
    readonly webSocketUrl: string;
  },
): TaskGroup {
  const { follower, accounts, webSocketUrl } = parts;
  const tasks = new TaskGroup({
    signal: context.signal,
    onFault: (_name, error) => context.fatal(error),
  });
  tasks.run("writer", (signal) => follower.run(signal));
  tasks.run("chain accounts", (signal) => accounts.learn({ signal, log: context.log }));
  tasks.run("new heads", async (signal) => {
    const heads = subscribeNewHeads({ url: webSocketUrl, signal });
    for await (const head of heads) follower.wake(head.height);
  });
  return tasks;
}

/** What the node says; while it does not answer, what the index was made for, so that reads go on. */
function findIdentity(
  node: EvmClient,
  options: { readonly log: Logger; readonly signal: AbortSignal; readonly expected: bigint },
  stored: () => Promise<IndexIdentity | undefined>,
): Promise<IndexIdentity> {
  const { log, signal, expected } = options;
  return retry(
    async () => {
      try {
        return await readIdentity(node, expected, { signal });
      } catch (error) {
        if (error instanceof IndexerError) throw error;
        const known = await stored();
        if (known === undefined) throw error;
        return known;
      }
    },
    {
      signal,
      minDelayMs: 200,
      maxDelayMs: 2_000,
      isRetriable: (error) => !(error instanceof IndexerError),
      onRetry: (error) => log.warn({ reason: errorMessage(error) }, "the node does not answer yet"),
    },
  );
}
