/** `<home>/config/indexer.toml`, read by the indexer. */
import { DEFAULT_PORTS } from "../chain/networks.js";
import { type ConfigOf, defineConfigFile, field } from "../runtime/config/config.js";

/** Schema of the file. */
export const indexerConfigFile = defineConfigFile("indexer", {
  chain: {
    network: field.choice({
      default: "testnet",
      values: ["mainnet", "testnet"],
      help: "Network that is indexed; its chain id is checked against the node's.",
    }),
  },
  api: {
    listen: field.listenAddress({
      default: `127.0.0.1:${DEFAULT_PORTS.indexer}`,
      help: "Address of the REST API. It is open: put it behind a proxy before others reach it.",
    }),
    "cors-origins": field.list({
      default: [],
      help: "Origins of web pages that may read; * allows all. Empty sends no CORS headers.",
    }),
    "requests-per-minute": field.integer({
      default: 0,
      min: 0,
      max: 1_000_000,
      unit: "requests",
      help: "Requests of one client address in a minute; 0 is without a limit. Loopback has none.",
    }),
    streams: field.integer({
      default: 200,
      min: 1,
      max: 10_000,
      unit: "connections",
      help:
        "Readers of /v1/stream at once; one client address (IPv6: a /64) has a tenth of them. Loopback " +
        "has all.",
    }),
    "exports-kept": field.integer({
      default: 20,
      min: 1,
      max: 1_000,
      unit: "files",
      help:
        "Files of exports in data/indexer; beyond it the oldest of the client that has most is " +
        "deleted.",
    }),
    "exports-mib": field.integer({
      default: 4_096,
      min: 1,
      max: 1_048_576,
      unit: "MiB",
      help:
        "All whole files of exports: beyond it the oldest of whoever has most are deleted, and a " +
        "larger one fails.",
    }),
  },
  node: {
    "json-rpc-url": field.url({
      default: `http://127.0.0.1:${DEFAULT_PORTS.jsonRpc}`,
      help: "JSON-RPC of your own node; only a Causeway node can be indexed.",
    }),
    "web-socket-url": field.url({
      default: `ws://127.0.0.1:${DEFAULT_PORTS.webSocket}`,
      schemes: ["ws", "wss"],
      help: "WebSocket of the same node; new heads wake the indexer before its next look.",
    }),
    "request-timeout-ms": field.integer({
      default: 30_000,
      min: 100,
      max: 300_000,
      unit: "ms",
      help: "Longest wait for one answer.",
    }),
  },
  indexer: {
    "poll-interval-ms": field.integer({
      default: 1_000,
      min: 20,
      max: 60_000,
      unit: "ms",
      help: "Time between two looks at the head.",
    }),
    "batch-mib": field.integer({
      default: 8,
      min: 1,
      max: 16,
      unit: "MiB",
      help: "Blocks that are asked for, and written in one transaction, at once.",
    }),
    "max-lag-blocks": field.integer({
      default: 20,
      min: 1,
      max: 1_000_000,
      unit: "blocks",
      help: "Distance from the head at which /ready answers 503.",
    }),
    "verify-per-round": field.integer({
      default: 500,
      min: 1,
      max: 100_000,
      unit: "balances",
      help: "Balances of coins, and of tokens, checked between two batches at most; a round ends after 2 s.",
    }),
  },
});

/** Values of the file. */
export type IndexerConfig = ConfigOf<typeof indexerConfigFile>;
