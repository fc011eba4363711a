/** Settings of the node: config.toml (consensus side) and app.toml (chain and EVM side). */
import { minimumGasPriceAtoken, parseMinimumGasPrices } from "../chain/units.js";
import { type ConfigOf, defineConfigFile, field } from "../runtime/config.js";
import { P2P_SECTION } from "./p2p/p2p-config.js";

const DURATION = /^([0-9]{1,6}(?:\.[0-9]{1,3})?)(ms|s|m)$/;
const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 };

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
        help: "Web origins whose pages may use the consensus RPC; * for all.",
      }),
    },
    p2p: P2P_SECTION,
    consensus: {
      timeout_propose: duration("3s", "How long a proposal is waited for before voting nil."),
      timeout_propose_delta: duration("500ms", "What each further round adds to timeout_propose."),
      timeout_prevote: duration(
        "1s",
        "How long to wait for more prevotes after two thirds of any.",
      ),
      timeout_prevote_delta: duration("500ms", "What each further round adds to timeout_prevote."),
      timeout_precommit: duration(
        "1s",
        "How long to wait for more precommits after two thirds of any.",
      ),
      timeout_precommit_delta: duration(
        "500ms",
        "What each further round adds to timeout_precommit.",
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
    inertKeys: [
      // Blocks come on the schedule of the genesis, empty ones too.
      "consensus.timeout_commit",
      "consensus.skip_timeout_commit",
      "consensus.create_empty_blocks",
      "consensus.create_empty_blocks_interval",
      "consensus.wal_file",
    ],
  },
);

const POSITIVE_GAS_PRICE = /^[0-9]{1,30}(\.[0-9]{1,18})?atoken$/;

/** `<home>/config/app.toml`; key names as operators of EVM chains of the SDK know them. */
export const APP_FILE = defineConfigFile("app", {
  "": {
    "minimum-gas-prices": field.string({
      default: "0.025atoken",
      pattern: POSITIVE_GAS_PRICE,
      allowed: 'a decimal number followed by "atoken"',
      help: "Lowest price per unit of gas that the mempool takes, rounded up to a whole atoken.",
    }),
    pruning: field.choice({
      default: "default",
      values: ["default", "nothing"],
      help:
        "default: state proofs for the last 1,024 blocks. nothing: proofs for every height (an " +
        "archive). Balances, nonces and storage are kept for every height either way.",
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
    "suggested-gas-price": field.bigint({
      default: 25_000_000n,
      min: 1n,
      max: 10n ** 30n,
      unit: "atoken per gas",
      help: "Answer of eth_gasPrice and eth_maxPriorityFeePerGas.",
    }),
    "gas-cap": field.bigint({
      default: 50_000_000n,
      min: 21_000n,
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
      help: "Threads for eth_call, eth_estimateGas and traces.",
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
    "cors-origins": field.list({
      default: [],
      help: "Origins of web pages that may call; * allows all. Empty sends no CORS headers.",
    }),
  },
  mempool: {
    "global-slots": field.integer({
      default: 200_000,
      min: 1,
      max: 10_000_000,
      unit: "transactions",
      help: "Most transactions in the pool, executable and queued together.",
    }),
  },
});

/** Values of config.toml. */
export type NodeConfig = ConfigOf<typeof CONFIG_FILE>;
/** Values of app.toml. */
export type AppConfig = ConfigOf<typeof APP_FILE>;

/** Lowest whole gas price that the pool takes, in atoken (D1). */
export function gasPriceFloorAtoken(app: AppConfig): bigint {
  return minimumGasPriceAtoken(parseMinimumGasPrices(app[""]["minimum-gas-prices"]));
}

/** Time limits of consensus as its scheduler takes them. */
export function consensusTimeouts({ consensus }: NodeConfig) {
  return {
    proposeMs: durationMs(consensus.timeout_propose),
    proposeDeltaMs: durationMs(consensus.timeout_propose_delta),
    prevoteMs: durationMs(consensus.timeout_prevote),
    prevoteDeltaMs: durationMs(consensus.timeout_prevote_delta),
    precommitMs: durationMs(consensus.timeout_precommit),
    precommitDeltaMs: durationMs(consensus.timeout_precommit_delta),
  };
}
