/** Settings of the deposit watcher: `<home>/config/watcher.toml`. */
import { DEFAULT_PORTS } from "../chain/networks.js";
import { MAX_LEASE_MS } from "../ledger/lease.js";
import { type ConfigOf, defineConfigFile, field } from "../runtime/config/config.js";
import { secondNodeFaults } from "../runtime/config/second-node.js";

const settings = defineConfigFile("watcher", {
  api: {
    listen: field.listenAddress({
      default: `127.0.0.1:${DEFAULT_PORTS.depositApi}`,
      help: "Where the deposit API listens. Its key is in config/api.key.",
    }),
    "body-limit-bytes": field.integer({
      default: 65_536,
      min: 1_024,
      max: 1_048_576,
      unit: "bytes",
      help: "Longest request body.",
    }),
    "deposit-key-from-index": field.integer({
      default: 0,
      min: 0,
      max: 2_147_483_647,
      help:
        "Index of the first address that config/deposit.xpub has given out. 0, unless that key was " +
        "exchanged on purpose: a home whose key is not the one of the ledger's addresses gives out none.",
    }),
  },
  chain: {
    network: field.choice({
      default: "testnet",
      values: ["testnet", "mainnet"],
      help: "Network whose deposits are watched; a node of another one is refused.",
    }),
  },
  ledger: {
    "two-persons": field.boolean({
      default: false,
      help:
        "Whether decisions about the books (causeway ledger) wait until another person than the " +
        "proposer approves them. Read by the command line.",
    }),
  },
  webhooks: {
    "allow-local": field.boolean({
      default: false,
      help:
        "Whether webhooks may be sent to loopback addresses, over http too. Else they go to the " +
        "public internet only, over https.",
    }),
    "poll-interval-ms": field.integer({
      default: 500,
      min: 20,
      max: 5_000,
      unit: "ms",
      help: "Time between two looks for events that webhooks wait for.",
    }),
    "timeout-ms": field.integer({
      default: 10_000,
      min: 100,
      max: 30_000,
      unit: "ms",
      help: "Longest wait for a receiver's answer.",
    }),
  },
  node: {
    "json-rpc-url": field.url({
      default: `http://127.0.0.1:${DEFAULT_PORTS.jsonRpc}`,
      help: "JSON-RPC of the node: heads, balances, account journal.",
    }),
    "second-json-rpc-url": field.url({
      default: "",
      help:
        "JSON-RPC of another node of the chain, which must have a block with the same hash, and the " +
        "same balances of what it touches, before anything of it is booked. Empty asks one node alone; " +
        "the first one is refused.",
    }),
    "web-socket-url": field.url({
      default: `ws://127.0.0.1:${DEFAULT_PORTS.webSocket}`,
      schemes: ["ws", "wss"],
      help: "WebSocket of the node; new heads wake the watcher before its next poll.",
    }),
    "data-api-url": field.url({
      default: `http://127.0.0.1:${DEFAULT_PORTS.sidecarOnline}`,
      help: "Data API that serves the blocks with their operations.",
    }),
    "request-timeout-ms": field.integer({
      default: 10_000,
      min: 100,
      max: 120_000,
      unit: "ms",
      help: "Longest wait for one answer.",
    }),
  },
  watcher: {
    "poll-interval-ms": field.integer({
      default: 2_000,
      min: 20,
      max: 60_000,
      unit: "ms",
      help: "Time between two looks at the head.",
    }),
    "start-height": field.string({
      default: "genesis",
      pattern: /^(genesis|head|[0-9]{1,15})$/,
      allowed: '"genesis", "head" or a height',
      help:
        "First block that is watched by a ledger that has seen none yet: block 0, the one behind " +
        "the newest at the first start, or this height. What the hot wallets hold before it is " +
        "booked as opening capital. Without effect once a block or a recovered payment is booked; " +
        "in the place of a lost ledger head is block 0.",
    }),
    "reads-in-flight": field.integer({
      default: 192,
      min: 1,
      max: 256,
      unit: "blocks",
      help: "Blocks read at the same time when catching up, and booked in one commit at most.",
    }),
    "lease-ms": field.integer({
      default: 3_000,
      min: 100,
      max: MAX_LEASE_MS,
      unit: "ms",
      help: "How long a watcher that fell silent keeps others of the same ledger from booking.",
    }),
    "reconcile-interval-s": field.integer({
      default: 300,
      min: 5,
      max: 86_400,
      unit: "s",
      help:
        "Time between two comparisons of ledger and chain. One that is due while the watcher catches " +
        "up waits for that, as long again at most.",
    }),
    "max-lag-blocks": field.integer({
      default: 20,
      min: 1,
      max: 1_000_000,
      unit: "blocks",
      help: "Distance from the head at which /ready answers 503.",
    }),
  },
});

/** Schema of `watcher.toml`. */
export const watcherConfigFile = Object.freeze({
  ...settings,
  combinationFaults: ({ node }: ConfigOf<typeof settings>) => secondNodeFaults(node),
});

/** Values of `watcher.toml`. */
export type WatcherConfig = ConfigOf<typeof watcherConfigFile>;
