/**
 * Flags and help of `npm start`, as JavaScript: a fresh clone refuses a wrong flag by them before it
 * installs and builds, which takes minutes.
 */
import { parseArgs } from "node:util";

/** Text of `npm start -- --help`. */
export const KIT_HELP = `Usage: npm start [-- OPTIONS]

Starts a local network (testnet ids, fresh genesis), both sidecar APIs, the deposit watcher, the
withdrawal worker, the indexer, the explorer, the operator console and PostgreSQL, and does the main
job once: a deposit is credited, a withdrawal is paid. The next start continues the same chain and
the same ledger.

  --home DIR             folder for keys, settings and data (else CAUSEWAY_HOME, else .causeway)
  --port-offset N        add N to every port, for kits side by side
  --once                 do the main job, check it against chain and ledger, then end
  --no-demo              only start
  --no-indexer           start without the indexer
  --no-explorer          start without the explorer
  --no-console           start without the operator console
  --block-interval-ms N  time between blocks of a new chain (default 2000)
  --validators N         validators of a new chain, each a node process (default 1)
  --evm ENGINE           which EVM executes blocks: causeway, or ethereumjs as a second opinion
  --help                 show this text

On a chain that exists (no faucet, no main job; the home remembers it from its first start on):

  --network NAME         mainnet or testnet: run a node of it
  --genesis FILE         its genesis
  --seeds LIST           nodes that tell peers, <host>:<port> or <node_id>@<host>:<port>, commas
  --node-url URL         use somebody's Causeway node (JSON-RPC) instead of running one
  --node-ws-url URL      its WebSocket (default: one port above, or the same place where
                         the URL has no port)

Environment: DATABASE_URL uses that PostgreSQL, REDIS_URL puts the queue on that Redis.
Ctrl-C or SIGTERM stops everything within 10 s.`;

/** The kit's flags: those with a value, and those without. */
const FLAGS = {
  home: "string",
  "port-offset": "string",
  "block-interval-ms": "string",
  validators: "string",
  evm: "string",
  network: "string",
  genesis: "string",
  seeds: "string",
  "node-url": "string",
  "node-ws-url": "string",
  once: "boolean",
  "no-demo": "boolean",
  "no-indexer": "boolean",
  "no-explorer": "boolean",
  "no-console": "boolean",
  help: "boolean",
};

/** Names of the kit's flags. */
export const KIT_FLAGS = Object.keys(FLAGS);

/** Values by flag, "" for flags without one; whatever is no flag of the kit is a fault. */
export function readFlags(argv) {
  const given = new Map();
  const faults = [];
  const { tokens } = parseArgs({
    args: [...argv],
    options: {
      ...Object.fromEntries(Object.entries(FLAGS).map(([name, type]) => [name, { type }])),
      help: { type: "boolean", short: "h" },
    },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === "positional") {
      faults.push(flagFault("argument", token.value, "flags only, see --help"));
    }
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    const type = Object.hasOwn(FLAGS, name) ? FLAGS[name] : undefined;
    if (type === undefined) {
      faults.push(flagFault(rawName, value ?? "", "no such flag, see --help"));
    } else if (type === "boolean") {
      given.set(name, "");
      if (value !== undefined) faults.push(flagFault(rawName, value, "this flag has no value"));
    } else if (value === undefined || value === "" || (!inlineValue && value.startsWith("--"))) {
      faults.push(flagFault(rawName, value ?? "", "a value after the flag"));
    } else {
      given.set(name, value);
    }
  }
  return { given, faults };
}

/** What is wrong with a flag. */
export function flagFault(key, value, allowed) {
  return { file: "flag", key, value: JSON.stringify(value), allowed };
}
