/** The console put together: users, APIs, pages, server. */
import { createEvmClient } from "../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../rpc-client/json-rpc.js";
import type { Clock } from "../runtime/process/clock.js";
import type { Service } from "../runtime/process/lifecycle.js";
import type { Logger } from "../runtime/process/logger.js";
import type { Metrics } from "../runtime/process/metrics.js";
import { loadAssets } from "../web/server/assets.js";
import type { ConsoleConfig } from "./config.js";
import { approvalRoutes } from "./pages/approvals.js";
import { coinRoutes } from "./pages/coins.js";
import type { PageContext } from "./pages/context.js";
import { depositRoutes } from "./pages/deposits.js";
import { overviewRoutes } from "./pages/overview.js";
import { policyRoutes } from "./pages/policy.js";
import { recordRoutes } from "./pages/records.js";
import { treasuryRoutes } from "./pages/treasury.js";
import { webhookRoutes } from "./pages/webhooks.js";
import { withdrawalRoutes } from "./pages/withdrawals.js";
import { type ConsoleServer, createConsoleServer } from "./server/console-server.js";
import type { WatchedPart } from "./sources/part-lights.js";
import { UserService } from "./users/user-service.js";
import { PASSWORD_COST, type PasswordCost } from "./users/sealed-key.js";

/** What a console is made from. */
export interface ConsoleOptions {
  readonly config: ConsoleConfig;
  /** Where the users' files lie. */
  readonly home: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The process's signal. */
  readonly signal: AbortSignal;
  /** Cost of new passwords; tests make it cheap. */
  readonly passwordCost?: PasswordCost;
}

/** A console; `services` are what has to be stopped, in the order of their start. */
export interface OperatorConsole {
  readonly server: ConsoleServer;
  readonly services: readonly Service[];
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Longest answer of the node: the head of a block. */
const MAX_NODE_ANSWER_BYTES = 1_048_576;

/** Puts a console together; nothing is asked before a page is. */
export function createConsole(options: ConsoleOptions): OperatorConsole {
  const { config, home, clock, log, metrics, signal } = options;
  const timeoutMs = config.api["timeout-ms"];
  const rpc = createJsonRpcClient({
    url: config.parts["node-url"],
    timeoutMs,
    maxResponseBytes: MAX_NODE_ANSWER_BYTES,
  });
  const context: PageContext = { evm: createEvmClient(rpc), parts: partsOf(config), clock };
  const server = createConsoleServer({
    listen: config.server.listen,
    network: config[""].network,
    publicUrl: config.server["public-url"],
    routes: [
      overviewRoutes(context),
      depositRoutes(),
      withdrawalRoutes(),
      approvalRoutes(),
      treasuryRoutes(),
      coinRoutes(),
      recordRoutes(),
      policyRoutes(),
      webhookRoutes(),
    ],
    assets: loadAssets(),
    home,
    users: new UserService(home, options.passwordCost ?? PASSWORD_COST),
    api: {
      depositUrl: config.api["deposit-url"],
      withdrawalUrl: config.api["withdrawal-url"],
      timeoutMs,
    },
    session: {
      idleMs: config.session["idle-minutes"] * MINUTE_MS,
      maxMs: config.session["max-hours"] * HOUR_MS,
      maxSessions: config.session["max-sessions"],
    },
    triesPerMinute: config.login["tries-per-minute"],
    concurrentPages: config.server["concurrent-pages"],
    clock,
    log,
    metrics,
    signal,
  });
  const client = { name: "node client", stop: async () => rpc.close() };
  return { server, services: [client, server] };
}

/** Parts whose lights are shown. */
function partsOf({ api, parts }: ConsoleConfig): readonly WatchedPart[] {
  const all = [
    ["deposit-watcher", api["deposit-url"], false],
    ["withdrawal-worker", api["withdrawal-url"], false],
    ["sidecar-online", parts["data-url"], false],
    ["sidecar-offline", parts["construction-url"], true],
    ["indexer", parts["indexer-url"], true],
    ["explorer", parts["explorer-url"], true],
  ] as const;
  return all
    .filter(([part]) => !parts.without.includes(part))
    .map(([part, url, isDispensable]) => ({ part, url, isDispensable }));
}
