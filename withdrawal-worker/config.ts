/** Settings of the withdrawal worker: `<home>/config/worker.toml`. */
import { DEFAULT_PORTS } from "../chain/networks.js";
import { type ConfigOf, defineConfigFile, field } from "../runtime/config/config.js";

/** Schema of `worker.toml`. */
export const workerConfigFile = defineConfigFile("worker", {
  api: {
    listen: field.listenAddress({
      default: `127.0.0.1:${DEFAULT_PORTS.withdrawalApi}`,
      help: "Where the withdrawal API listens. Its key is in config/api.key.",
    }),
    "body-limit-bytes": field.integer({
      default: 65_536,
      min: 1_024,
      max: 1_048_576,
      unit: "bytes",
      help: "Longest request body.",
    }),
  },
  chain: {
    network: field.choice({
      default: "testnet",
      values: ["testnet", "mainnet"],
      help: "Network that withdrawals are paid on; a node of another one is refused.",
    }),
  },
  node: {
    "json-rpc-url": field.url({
      default: `http://127.0.0.1:${DEFAULT_PORTS.jsonRpc}`,
      help: "JSON-RPC of the node: estimates, sending, receipts.",
    }),
    "request-timeout-ms": field.integer({
      default: 10_000,
      min: 100,
      max: 120_000,
      unit: "ms",
      help: "Longest wait for one answer. Its end says nothing: the same bytes are sent again.",
    }),
  },
  gas: {
    "margin-percent": field.integer({
      default: 20,
      min: 0,
      max: 400,
      unit: "percent",
      help: "Added to every estimate of gas.",
    }),
    "limit-max": field.bigint({
      default: 10_000_000n,
      min: 21_000n,
      max: 600_000_000n,
      unit: "gas",
      help: "Most gas of one payment; a destination that needs more ends as failed.",
    }),
    "price-floor-atoken": field.bigint({
      default: 1n,
      min: 0n,
      max: 10n ** 18n,
      unit: "atoken per gas",
      help: "Lowest gas price that is signed, whatever the node suggests.",
    }),
    "price-cap-atoken": field.bigint({
      default: 100_000_000_000n,
      min: 1n,
      max: 10n ** 18n,
      unit: "atoken per gas",
      help: "Highest gas price that is signed, whatever the node suggests.",
    }),
  },
  worker: {
    "scan-interval-ms": field.integer({
      default: 1_000,
      min: 20,
      max: 2_000,
      unit: "ms",
      help: "Longest time between two looks at the tables: what a lost wake-up costs.",
    }),
    "poll-interval-ms": field.integer({
      default: 500,
      min: 20,
      max: 2_000,
      unit: "ms",
      help: "Time between two looks at the chain while payments are on their way.",
    }),
    "rebroadcast-interval-ms": field.integer({
      default: 5_000,
      min: 100,
      max: 600_000,
      unit: "ms",
      help: "Time after which a payment that the node's pool does not show is sent again.",
    }),
    "retry-delay-ms": field.integer({
      default: 2_000,
      min: 20,
      max: 600_000,
      unit: "ms",
      help: "Wait before a request that could not be estimated or covered is tried again.",
    }),
    "receipt-patience-ms": field.integer({
      default: 5_000,
      min: 100,
      max: 600_000,
      unit: "ms",
      help: "How long the receipt of a consumed nonce may be missing before signing freezes.",
    }),
    "lease-ms": field.integer({
      default: 3_000,
      min: 500,
      max: 60_000,
      unit: "ms",
      help: "How long a worker that fell silent keeps the hot wallet.",
    }),
    "batch-size": field.integer({
      default: 200,
      min: 1,
      max: 400,
      help: "Payments per database statement and per JSON-RPC batch.",
    }),
    "max-in-flight": field.integer({
      default: 4_096,
      min: 1,
      max: 8_192,
      help: "Open nonces at once; this chain's pool takes 8,192 of one sender.",
    }),
  },
});

/** Values of `worker.toml`. */
export type WorkerConfig = ConfigOf<typeof workerConfigFile>;
