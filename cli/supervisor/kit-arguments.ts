/** The command line of `npm start`. */
import { parseArgs } from "node:util";
import { type ConfigFault, MAX_PORT_OFFSET } from "../../runtime/config/config.js";
import { CliError } from "../errors.js";
import type { ChainFlags } from "../home/network/attach.js";
import { EVM_CHOICES } from "../home/evm-choice.js";
import { type LeftOut, OPTIONAL_PARTS } from "../home/kit-config.js";
import { MAX_KIT_VALIDATORS } from "../home/network/kit-nodes.js";

/** What the reader asked for. */
export interface KitArguments {
  readonly home: string | undefined;
  readonly portOffset: number | undefined;
  /** Do the main job once, check it, end. */
  readonly once: boolean;
  /** Start without doing the main job. */
  readonly noDemo: boolean;
  /** Start without the indexer. */
  readonly noIndexer: boolean;
  /** Start without the explorer. */
  readonly noExplorer: boolean;
  /** Start without the operator console. */
  readonly noConsole: boolean;
  /** Block interval of a chain that is made now. */
  readonly blockIntervalMs: number | undefined;
  /** Validators of a chain that is made now; an existing chain keeps its own. */
  readonly validators: number | undefined;
  /** Which EVM executes blocks; undefined: as the settings say. */
  readonly evm: string | undefined;
  /** A chain that exists; all undefined means one of the home's own. */
  readonly chain: ChainFlags;
  readonly help: boolean;
}

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
  --node-ws-url URL      its WebSocket (default: one port above)

Environment: DATABASE_URL uses that PostgreSQL, REDIS_URL puts the queue on that Redis.
Ctrl-C or SIGTERM stops everything within 10 s.`;

/** Bounds of the block interval, as in the genesis file. */
const BLOCK_INTERVAL_MS = { min: 50, max: 60_000 };

/** The kit's flags: those with a value, and those without. */
const FLAGS: Readonly<Record<string, "string" | "boolean">> = {
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
export const KIT_FLAGS: readonly string[] = Object.keys(FLAGS);

/** What was understood of a command line, and all that is wrong with it. */
export interface ParsedKitArguments {
  readonly args: KitArguments;
  /** Empty when the arguments can be used; a wrong flag counts as not given in `args`. */
  readonly faults: readonly ConfigFault[];
}

/** Reads the arguments of the kit; never throws, so that all faults are told together. */
export function parseKitArguments(argv: readonly string[]): ParsedKitArguments {
  const faults: ConfigFault[] = [];
  const given = readFlags(argv, faults);
  const whole = (name: string, range: { min: number; max: number }): number | undefined => {
    const text = given.get(name);
    const value = text === undefined ? undefined : parseWhole(text, range);
    if (text !== undefined && value === undefined) {
      faults.push(flagFault(`--${name}`, text, allowedNumbers(range)));
    }
    return value;
  };
  const once = given.has("once");
  const noDemo = given.has("no-demo");
  if (once && noDemo) faults.push(flagFault("--once", "beside --no-demo", "one of the two"));
  const evm = EVM_CHOICES.find((name) => name === given.get("evm"));
  if (given.has("evm") && evm === undefined) {
    faults.push(flagFault("--evm", given.get("evm") ?? "", EVM_CHOICES.join(" or ")));
  }
  const chain = {
    network: given.get("network"),
    genesis: given.get("genesis"),
    seeds: given.get("seeds"),
    nodeUrl: given.get("node-url"),
    nodeWsUrl: given.get("node-ws-url"),
  };
  const args = {
    home: given.get("home"),
    portOffset: whole("port-offset", { min: 0, max: MAX_PORT_OFFSET }),
    once,
    noDemo,
    noIndexer: given.has("no-indexer"),
    noExplorer: given.has("no-explorer"),
    noConsole: given.has("no-console"),
    blockIntervalMs: whole("block-interval-ms", BLOCK_INTERVAL_MS),
    validators: whole("validators", { min: 1, max: MAX_KIT_VALIDATORS }),
    evm,
    chain,
    help: given.has("help"),
  };
  return { args, faults };
}

/**
 * Reads `--block-interval-ms`.
 * @throws USAGE
 */
export function parseBlockInterval(text: string): number {
  const value = parseWhole(text, BLOCK_INTERVAL_MS);
  if (value !== undefined) return value;
  const allowed = allowedNumbers(BLOCK_INTERVAL_MS);
  throw new CliError("USAGE", `--block-interval-ms must be ${allowed}, not "${text}".`);
}

/** Values by flag, "" for flags without one; whatever is no flag of the kit becomes a fault. */
function readFlags(argv: readonly string[], faults: ConfigFault[]): Map<string, string> {
  const given = new Map<string, string>();
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
    const type = FLAGS[name];
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
  return given;
}

function flagFault(key: string, value: string, allowed: string): ConfigFault {
  return { file: "flag", key, value: JSON.stringify(value), allowed };
}

function parseWhole(text: string, range: { min: number; max: number }): number | undefined {
  const value = /^[0-9]{1,6}$/.test(text) ? Number(text) : Number.NaN;
  return value >= range.min && value <= range.max ? value : undefined;
}

function allowedNumbers({ min, max }: { min: number; max: number }): string {
  return `a whole number from ${min} to ${max}`;
}

/** Parts that the flags leave out. */
export function leftOut({
  noIndexer,
  noExplorer,
  noConsole,
}: Pick<KitArguments, "noIndexer" | "noExplorer" | "noConsole">): ReadonlySet<LeftOut> {
  const flags = { indexer: noIndexer, explorer: noExplorer, console: noConsole };
  return new Set(OPTIONAL_PARTS.filter((part) => flags[part]));
}
