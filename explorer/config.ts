/** `<home>/config/explorer.toml`, read by the explorer. */
import { type ConfigOf, defineConfigFile, field } from "../runtime/config/config.js";

/** Schema of the file. */
export const explorerConfig = defineConfigFile("explorer", {
  "": {
    network: field.choice({
      default: "testnet",
      values: ["mainnet", "testnet"],
      help: "Network whose pages are shown; its chain id is checked against the node's.",
    }),
  },
  server: {
    listen: field.listenAddress({
      default: "127.0.0.1:3000",
      help: "Address of the pages.",
    }),
    "public-url": field.url({
      default: "",
      help:
        "Address under which people reach the pages, for links that are sent to others. Empty: links " +
        "are shown without a host.",
    }),
    "cache-mib": field.integer({
      default: 64,
      min: 1,
      max: 4_096,
      unit: "MiB",
      help: "Memory for finished pages.",
    }),
    "max-streams": field.integer({
      default: 256,
      min: 0,
      max: 10_000,
      unit: "connections",
      help:
        "Pages that are kept up to date at the same time; more have to be loaded again by hand. One " +
        "client (an IPv4 address or an IPv6 /64) has a tenth of them, and so have all behind one proxy " +
        "on another machine.",
    }),
  },
  limits: {
    "pages-per-minute": field.integer({
      default: 600,
      min: 1,
      max: 1_000_000,
      unit: "pages per minute",
      help:
        "Pages that are made anew for one client (an IPv4 address or an IPv6 /64). Finished pages " +
        "are not counted. A page that asks much of the node counts five times.",
    }),
    loopback: field.boolean({
      default: false,
      help:
        "Whether clients of this machine are limited, too, their live pages included. Behind a " +
        "proxy on the same machine all are: let the proxy limit them.",
    }),
    "concurrent-pages": field.integer({
      default: 16,
      min: 1,
      max: 256,
      unit: "pages",
      help: "Pages that are made at the same time: what the node can be asked at most.",
    }),
  },
  node: {
    url: field.url({
      default: "http://127.0.0.1:8545",
      help: "JSON-RPC of the node.",
    }),
    "ws-url": field.url({
      default: "ws://127.0.0.1:8546",
      schemes: ["ws", "wss"],
      help: "WebSocket of the same node; a new head wakes the pages before the next look.",
    }),
    "consensus-url": field.url({
      default: "http://127.0.0.1:26657",
      help:
        "Consensus RPC of the same node: commits, validators, hashes of the Cosmos side, supply. A " +
        "node that does not serve it leaves these parts out.",
    }),
    "rest-url": field.url({
      default: "http://127.0.0.1:1317",
      help:
        "REST interface of the same node: stake, governance, parameters. A node that does not serve it " +
        "leaves these parts out.",
    }),
    "timeout-ms": field.integer({
      default: 10_000,
      min: 100,
      max: 300_000,
      unit: "ms",
      help: "Time for one request to the node or the indexer.",
    }),
    "max-response-mib": field.integer({
      default: 32,
      min: 1,
      max: 512,
      unit: "MiB",
      help: "Longest reply of the node that a page is made of; what is longer is left out and told.",
    }),
    "max-block-age-ms": field.integer({
      default: 60_000,
      min: 1_000,
      max: 86_400_000,
      unit: "ms",
      help: "When the newest block is older than this, or that far ahead of the clock, /ready is 503.",
    }),
  },
  verification: {
    enabled: field.boolean({
      default: true,
      help:
        "Whether anybody may verify contracts by sending their sources, which are compiled here. What " +
        "was verified stays in data/explorer of the home and is shown in any case.",
    }),
    compilers: field.string({
      default: "compilers",
      help:
        "Folder of Solidity compilers, below the home where it is not absolute: WebAssembly builds " +
        "named as at binaries.soliditylang.org/emscripten-wasm32, " +
        "soljson-v0.8.24+commit.e11b9ed9.js. The npm package solc is one more where it is installed. " +
        "Programs in it are run: check their hashes.",
    }),
    "compile-ms": field.integer({
      default: 60_000,
      min: 1_000,
      max: 600_000,
      unit: "ms",
      help: "Time for one compilation.",
    }),
    "memory-mib": field.integer({
      default: 512,
      min: 64,
      max: 4_096,
      unit: "MiB",
      help:
        "Memory of a compiler; one runs at a time, in a thread, with at most 384 MiB for texts " +
        "beside it.",
    }),
    "store-mib": field.integer({
      default: 256,
      min: 1,
      max: 65_536,
      unit: "MiB",
      help: "Disk for verified contracts; when it is full, no more are taken.",
    }),
  },
  indexer: {
    url: field.url({
      default: "http://127.0.0.1:8084",
      help: "REST of the indexer. Where it does not answer, pages say so and show what the node has.",
    }),
  },
});

/** Values of the file. */
export type ExplorerConfig = ConfigOf<typeof explorerConfig>;
