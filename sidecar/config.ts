/** `<home>/config/sidecar.toml`, read by the online and the offline server. */
import { defineConfigFile, field } from "../runtime/config/config.js";

/** Schema of the file. */
export const sidecarConfig = defineConfigFile("sidecar", {
  "": {
    network: field.choice({
      default: "testnet",
      values: ["mainnet", "testnet"],
      help: "Network this server answers for; its chain id is checked against the node's.",
    }),
  },
  online: {
    listen: field.listenAddress({
      default: "127.0.0.1:8080",
      help: "Address of the Data API and of the online Construction API.",
    }),
  },
  offline: {
    listen: field.listenAddress({
      default: "127.0.0.1:8081",
      help: "Address of the offline Construction API.",
    }),
  },
  node: {
    url: field.url({
      default: "http://127.0.0.1:8545",
      help: "JSON-RPC of your own full node. Not read by the offline server.",
    }),
    "ws-url": field.url({
      default: "ws://127.0.0.1:8546",
      schemes: ["ws", "wss"],
      help: "WebSocket of the same node; a new head wakes the index before its next look.",
    }),
    "timeout-ms": field.integer({
      default: 10_000,
      min: 100,
      max: 300_000,
      unit: "ms",
      help: "Time for one request to the node.",
    }),
    "max-response-mib": field.integer({
      default: 64,
      min: 1,
      max: 512,
      unit: "MiB",
      help: "Longest reply of the node; a full block with its journal is the largest.",
    }),
    "max-block-age-ms": field.integer({
      default: 60_000,
      min: 1_000,
      max: 86_400_000,
      unit: "ms",
      help: "When the newest block is older than this, or that far ahead of the clock, /ready is 503.",
    }),
  },
  index: {
    "stored-blocks-mib": field.integer({
      default: 4_096,
      min: 1,
      max: 1_048_576,
      unit: "MiB",
      help:
        "Disk for finished /block replies in data/sidecar, with the accounts that each names; older " +
        "ones are made again.",
    }),
    "verify-holders": field.integer({
      default: 256,
      min: 1,
      max: 10_000,
      unit: "accounts",
      help: "Up to so many holders of a token are checked in each block that touches it.",
    }),
  },
  cache: {
    "blocks-mib": field.integer({
      default: 256,
      min: 1,
      max: 65_536,
      unit: "MiB",
      help: "Memory for finished /block replies; blocks are final, so they never go stale.",
    }),
  },
  construction: {
    "gas-margin-percent": field.integer({
      default: 20,
      min: 0,
      max: 1_000,
      unit: "%",
      help: "Added to every gas estimate: state may change until the transaction is mined.",
    }),
    "minimum-gas-price-atoken": field.bigint({
      default: 1n,
      min: 1n,
      max: 10n ** 18n,
      unit: "atoken per gas",
      help:
        "Lowest gas price suggested or taken, where the node tells no higher one (eth_capabilities " +
        "names its minimum-gas-prices, rounded up).",
    }),
  },
});
