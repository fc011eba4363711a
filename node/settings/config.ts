/** Settings of the node: config.toml (consensus side) and app.toml (chain and EVM side). */
import { join } from "node:path";
import { DEFAULT_GAS_PRICE_ATOKEN, TRANSFER_GAS } from "../../chain/networks.js";
import { minimumGasPriceAtoken, parseMinimumGasPrices, type Atoken } from "../../chain/units.js";
import {
  type ConfigOf,
  type ConfigSources,
  defineConfigFile,
  field,
  loadConfig,
} from "../../runtime/config/config.js";
import { readTogether } from "../../runtime/config/read-together.js";
import {
  COMET_INERT_KEYS,
  COMET_NEUTRAL_VALUES,
  SDK_INERT_KEYS,
  SDK_NEUTRAL_VALUES,
} from "./inert-settings.js";
import { API_SECTION, GRPC_SECTION, MAX_RATE } from "./api-config.js";
import { foreignNamespaces, NAMESPACES_FIELD } from "./json-rpc-namespaces.js";
import { MEMORY_SECTION, STORE_SECTION } from "./memory-config.js";
import { P2P_SECTION } from "./p2p-config.js";
import { PRUNING_SETTINGS, pruningFaults } from "./pruning-config.js";
import { UPGRADE_SETTINGS } from "./upgrade-config.js";
import { STATE_SYNC_SECTION, stateSyncFaults } from "./state-sync-config.js";

const DURATION = /^([0-9]{1,6}(?:\.[0-9]{1,3})?)(ms|s|m)$/;
const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 };

/** Block interval that the default time limits are meant for. */
const USUAL_INTERVAL_MS = 2_000;

/** However fast the blocks: below these, busy machines lose more rounds than dead ones cost. */
const LEAST_PROPOSE_MS = 500;
const LEAST_WAIT_MS = 200;

/** What is said of every default that follows the chain's pace. */
function scaledHelp(leastMs: number): string {
  return (
    "Left at the default it is shortened in proportion on chains with blocks faster than every " +
    `2 s, down to ${leastMs}ms at least; any other text, also the same time in another unit, is ` +
    "taken as it stands."
  );
}

/** A time limit of consensus, as CometBFT writes durations. */
function duration(defaultText: string, help: string) {
  return field.string({
    default: defaultText,
    pattern: DURATION,
    allowed: 'a number and a unit of time, for example "500ms" or "3s"',
    help,
  });
}

/** Milliseconds of a duration that the schema let pass. */
function durationMs(text: string): number {
  const [, amount, unit] = DURATION.exec(text) ?? [];
  return Math.round(Number(amount) * (MS_PER_UNIT[unit ?? ""] ?? Number.NaN));
}

/** What is said of both bounds of searches and subscriptions. */
const RATE_HELP =
  "that one address may make; more are refused as over a limit. Two seconds' worth may come at once. " +
  "Clients on this machine are not counted, a proxy's among them. 0 sets no bound.";

/** `<home>/config/config.toml`; key names as operators of CometBFT nodes know them. */
export const CONFIG_FILE = defineConfigFile(
  "config",
  {
    "": {
      moniker: field.string({ default: "causeway", help: "Name of this node, shown to others." }),
    },
    rpc: {
      laddr: field.listenAddress({
        default: "127.0.0.1:26657",
        scheme: "tcp://",
        help: "Where the consensus RPC listens.",
      }),
      cors_allowed_origins: field.list({
        default: [],
        help:
          "Web origins whose pages may read the consensus RPC over HTTP, as https://*.example; * for all. " +
          "Its WebSocket takes any.",
      }),
      rate_limit: field.integer({
        default: 0,
        min: 0,
        max: MAX_RATE,
        unit: "calls per second",
        help: `Most calls of tx_search, block_search and subscribe together ${RATE_HELP}`,
      }),
    },
    p2p: P2P_SECTION,
    statesync: STATE_SYNC_SECTION,
    consensus: {
      timeout_propose: duration(
        "3s",
        `How long a proposal is waited for before voting nil. ${scaledHelp(LEAST_PROPOSE_MS)}`,
      ),
      timeout_propose_delta: duration(
        "500ms",
        `What each further round adds to timeout_propose. ${scaledHelp(LEAST_WAIT_MS)}`,
      ),
      timeout_prevote: duration(
        "1s",
        `How long to wait for more prevotes after two thirds of any. ${scaledHelp(LEAST_WAIT_MS)}`,
      ),
      timeout_prevote_delta: duration(
        "500ms",
        `What each further round adds to timeout_prevote. ${scaledHelp(LEAST_WAIT_MS)}`,
      ),
      timeout_precommit: duration(
        "1s",
        `How long to wait for more precommits after two thirds of any. ${scaledHelp(LEAST_WAIT_MS)}`,
      ),
      timeout_precommit_delta: duration(
        "500ms",
        `What each further round adds to timeout_precommit. ${scaledHelp(LEAST_WAIT_MS)}`,
      ),
      double_sign_check_height: field.integer({
        default: 0,
        min: 0,
        max: 100_000,
        unit: "blocks",
        help:
          "Refuse to start when this validator's key signed one of so many last blocks: another " +
          "process may be using it. 0 does not look.",
      }),
    },
    instrumentation: {
      prometheus: field.boolean({ default: true, help: "Whether metrics are served." }),
      prometheus_listen_addr: field.listenAddress({
        default: "127.0.0.1:26660",
        help: "Where metrics are served, at /metrics.",
      }),
    },
  },
  {
    inertKeys: COMET_INERT_KEYS,
    neutralValues: COMET_NEUTRAL_VALUES,
    combinationFaults: ({ statesync }) => stateSyncFaults(statesync),
  },
);

const POSITIVE_GAS_PRICE = /^[0-9]{1,30}(\.[0-9]{1,18})?atoken$/;

/** `<home>/config/app.toml`; key names as operators of EVM chains of the SDK know them. */
export const APP_FILE = defineConfigFile(
  "app",
  {
    "": {
      "minimum-gas-prices": field.string({
        default: "0.025atoken",
        pattern: POSITIVE_GAS_PRICE,
        allowed: 'a decimal number followed by "atoken"',
        help: "Lowest price per unit of gas that the mempool takes, rounded up to a whole atoken.",
      }),
      ...PRUNING_SETTINGS,
      ...UPGRADE_SETTINGS,
    },
    execution: {
      engine: field.choice({
        default: "causeway",
        values: ["causeway", "ethereumjs"],
        help:
          "Which EVM executes blocks. ethereumjs is the library, some ten times slower: a second " +
          "opinion for a node that follows a chain. Compute units are counted by the chain's own EVM.",
      }),
    },
    "json-rpc": {
      address: field.listenAddress({
        default: "127.0.0.1:8545",
        help: "Where the EVM JSON-RPC listens.",
      }),
      "ws-address": field.listenAddress({
        default: "127.0.0.1:8546",
        help: "Where the EVM WebSocket listens.",
      }),
      api: NAMESPACES_FIELD,
      "suggested-gas-price": field.bigint({
        default: DEFAULT_GAS_PRICE_ATOKEN,
        min: 1n,
        max: 10n ** 30n,
        unit: "atoken per gas",
        help: "Answer of eth_gasPrice and eth_maxPriorityFeePerGas; minimum-gas-prices where that is more.",
      }),
      "gas-cap": field.bigint({
        default: 50_000_000n,
        min: TRANSFER_GAS,
        max: 10n ** 12n,
        unit: "gas",
        help: "Most gas that eth_call and traces may use.",
      }),
      "evm-timeout-ms": field.integer({
        default: 5_000,
        min: 100,
        max: 600_000,
        unit: "ms",
        help: "Time after which a call or a trace is ended with its worker.",
      }),
      "call-workers": field.integer({
        default: 1,
        min: 1,
        max: 64,
        help:
          "Threads for eth_call, eth_estimateGas and traces. Clients have turns, told apart by their " +
          "addresses, and every second turn is an estimate's where one waits.",
      }),
      "logs-cap": field.integer({
        default: 10_000,
        min: 1,
        max: 1_000_000,
        help: "Most logs that one eth_getLogs may return.",
      }),
      "block-range-cap": field.integer({
        default: 10_000,
        min: 1,
        max: 1_000_000,
        unit: "blocks",
        help: "Longest range of one eth_getLogs.",
      }),
      "batch-request-limit": field.integer({
        default: 1_000,
        min: 1,
        max: 100_000,
        help: "Most calls in one JSON-RPC batch.",
      }),
      "rate-limit": field.integer({
        default: 0,
        min: 0,
        max: MAX_RATE,
        unit: "calls per second",
        help:
          "Most calls of eth_getLogs, eth_newFilter, eth_getFilterLogs and eth_subscribe together " +
          RATE_HELP,
      }),
      "cors-origins": field.list({
        default: [],
        help: "Origins of web pages that may call; * allows all. Empty sends no CORS headers.",
      }),
      "ws-origins": field.list({
        default: [],
        help:
          "More origins that may open a WebSocket. What one does not name may be anything: localhost is " +
          "every page of this machine. Programs that send the server's own address need none.",
      }),
    },
    api: API_SECTION,
    grpc: GRPC_SECTION,
    "state-sync": {
      "snapshot-interval": field.integer({
        default: 0,
        min: 0,
        max: 10_000_000,
        unit: "blocks",
        help:
          "A snapshot of the state is written at every height that is a multiple of this, for new " +
          "nodes that join by state sync. 0 writes none, and deletes those that are there.",
      }),
      "snapshot-keep-recent": field.integer({
        default: 2,
        min: 0,
        max: 1_000,
        help:
          "Newest snapshots that are kept; 0 keeps all, also where none is written. No blocks are " +
          "pruned from the oldest one on.",
      }),
    },
    memory: MEMORY_SECTION,
    store: STORE_SECTION,
    mempool: {
      "global-slots": field.integer({
        default: 200_000,
        min: 1,
        max: 10_000_000,
        unit: "transactions",
        help: "Most transactions in the pool, executable and queued together.",
      }),
    },
  },
  {
    inertKeys: SDK_INERT_KEYS,
    neutralValues: SDK_NEUTRAL_VALUES,
    combinationFaults: (values) => pruningFaults(values[""]),
  },
);

/** Values of config.toml. */
export type NodeConfig = ConfigOf<typeof CONFIG_FILE>;
type TimeoutKey = Extract<keyof NodeConfig["consensus"], `timeout_${string}`>;
/** Values of app.toml. */
export type AppConfig = ConfigOf<typeof APP_FILE>;

/**
 * Both files of a home.
 * @throws ConfigError with the faults of both
 */
export function loadNodeSettings(sources: ConfigSources): {
  readonly config: NodeConfig;
  readonly app: AppConfig;
} {
  const settings = readTogether({
    config: () => loadConfig(sources, CONFIG_FILE),
    app: () => loadConfig(sources, APP_FILE),
  });
  const file = join(sources.home, "config", `${APP_FILE.name}.toml`);
  for (const name of foreignNamespaces(settings.app["json-rpc"].api)) {
    sources.onWarning?.(`${file}: ${name} of json-rpc.api has no effect here`);
  }
  return settings;
}

/** Lowest whole gas price that the pool takes, in atoken (D1). */
export function gasPriceFloorAtoken(app: AppConfig): Atoken {
  return minimumGasPriceAtoken(parseMinimumGasPrices(app[""]["minimum-gas-prices"]));
}

/** Gas price that is told who asks for one: never one that the pool refuses. */
export function suggestedGasPriceAtoken(app: AppConfig): Atoken {
  const suggestedAtoken = app["json-rpc"]["suggested-gas-price"];
  const floorAtoken = gasPriceFloorAtoken(app);
  return suggestedAtoken > floorAtoken ? suggestedAtoken : floorAtoken;
}

/**
 * Time limits of consensus as its scheduler takes them. Those left at their default follow the
 * chain's pace, so that a dead proposer does not cost fifteen blocks of a fast chain.
 * @param blockIntervalMs as the genesis has it
 */
export function consensusTimeouts({ consensus }: NodeConfig, blockIntervalMs: number) {
  const fields = CONFIG_FILE.sections.consensus;
  const limit = (key: TimeoutKey, leastMs: number): number => {
    const text = consensus[key];
    const ms = durationMs(text);
    if (text !== fields[key].defaultValue) return ms;
    const scaledMs = Math.round((ms * blockIntervalMs) / USUAL_INTERVAL_MS);
    return Math.min(ms, Math.max(leastMs, scaledMs));
  };
  return {
    proposeMs: limit("timeout_propose", LEAST_PROPOSE_MS),
    proposeDeltaMs: limit("timeout_propose_delta", LEAST_WAIT_MS),
    prevoteMs: limit("timeout_prevote", LEAST_WAIT_MS),
    prevoteDeltaMs: limit("timeout_prevote_delta", LEAST_WAIT_MS),
    precommitMs: limit("timeout_precommit", LEAST_WAIT_MS),
    precommitDeltaMs: limit("timeout_precommit_delta", LEAST_WAIT_MS),
  };
}
