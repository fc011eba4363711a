/** `<home>/config/console.toml`, read by the operator console. */
import { DEFAULT_PORTS } from "../chain/networks.js";
import { type ConfigOf, defineConfigFile, field } from "../runtime/config/config.js";

/** URL of a part of the kit on this machine. */
function local(port: number): string {
  return `http://127.0.0.1:${port}`;
}

/** Schema of the file. */
export const consoleConfig = defineConfigFile("console", {
  "": {
    network: field.choice({
      default: "testnet",
      values: ["mainnet", "testnet"],
      help: "Network that is named on every page.",
    }),
  },
  server: {
    listen: field.listenAddress({
      default: `127.0.0.1:${DEFAULT_PORTS.console}`,
      help: "Address of the console.",
    }),
    "public-url": field.url({
      default: "",
      help:
        "Address under which people reach the console through a proxy. Requests for another host " +
        "are refused, but for those of this machine. With https cookies are sent over https only.",
    }),
    "concurrent-pages": field.integer({
      default: 8,
      min: 1,
      max: 64,
      unit: "pages",
      help:
        "Pages that are made at the same time, and beside them as many actions: what the APIs are " +
        "asked at most. One user has half of them.",
    }),
  },
  session: {
    "idle-minutes": field.integer({
      default: 30,
      min: 1,
      max: 1_440,
      unit: "minutes",
      help: "A session that is not used for so long ends.",
    }),
    "max-hours": field.integer({
      default: 12,
      min: 1,
      max: 168,
      unit: "hours",
      help: "A session ends after so long, however it is used.",
    }),
    "max-sessions": field.integer({
      default: 200,
      min: 1,
      max: 10_000,
      unit: "sessions",
      help: "Sessions at the same time; the one that was not used longest ends for a new one.",
    }),
  },
  login: {
    "tries-per-minute": field.integer({
      default: 10,
      min: 1,
      max: 1_000,
      unit: "tries",
      help:
        "Tries to log in from one address, and for one name; then the form has to wait. A browser in " +
        "which the user was in before has as many of its own. With an https public-url connections " +
        "of this machine are a proxy's, and not counted by address.",
    }),
  },
  api: {
    "deposit-url": field.url({
      default: local(DEFAULT_PORTS.depositApi),
      help: "The deposit API.",
    }),
    "withdrawal-url": field.url({
      default: local(DEFAULT_PORTS.withdrawalApi),
      help: "The withdrawal API.",
    }),
    "timeout-ms": field.integer({
      default: 10_000,
      min: 100,
      max: 120_000,
      unit: "ms",
      help: "Time for one call.",
    }),
  },
  parts: {
    "node-url": field.url({
      default: local(DEFAULT_PORTS.jsonRpc),
      help: "JSON-RPC of the node, for the age of its newest block.",
    }),
    "data-url": field.url({
      default: local(DEFAULT_PORTS.sidecarOnline),
      help: "Rosetta's online APIs, whose light is shown.",
    }),
    "construction-url": field.url({
      default: local(DEFAULT_PORTS.sidecarOffline),
      help: "Rosetta's offline APIs, whose light is shown.",
    }),
    "indexer-url": field.url({
      default: local(DEFAULT_PORTS.indexer),
      help: "The indexer, whose light is shown.",
    }),
    "explorer-url": field.url({
      default: local(DEFAULT_PORTS.explorer),
      help: "The explorer, whose light is shown.",
    }),
    without: field.list({
      default: [],
      style: "comma",
      pattern: /^(sidecar-online|sidecar-offline|indexer|explorer)$/,
      allowed: "any of sidecar-online, sidecar-offline, indexer, explorer",
      help: "Parts whose lights are not shown: they are not there, or not to be reached from here.",
    }),
  },
});

/** Values of the file. */
export type ConsoleConfig = ConfigOf<typeof consoleConfig>;
