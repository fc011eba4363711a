/** The command line of `npm start`. */
import { BLOCK_INTERVAL_BOUNDS_MS } from "../../chain/networks.js";
import { type ConfigFault, MAX_PORT_OFFSET } from "../../runtime/config/config.js";
import { CliError } from "../errors.js";
import type { ChainFlags } from "../home/network/attach.js";
import { EVM_CHOICES } from "../home/evm-choice.js";
import { type LeftOut, OPTIONAL_PARTS } from "../home/kit-config.js";
import { MAX_KIT_VALIDATORS } from "../home/network/kit-nodes.js";
import { flagFault, readFlags } from "./kit-flags.mjs";

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

/** What was understood of a command line, and all that is wrong with it. */
export interface ParsedKitArguments {
  readonly args: KitArguments;
  /** Empty when the arguments can be used; a wrong flag counts as not given in `args`. */
  readonly faults: readonly ConfigFault[];
}

/** Reads the arguments of the kit; never throws, so that all faults are told together. */
export function parseKitArguments(argv: readonly string[]): ParsedKitArguments {
  const { given, faults: unread } = readFlags(argv);
  const faults: ConfigFault[] = [...unread];
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
    blockIntervalMs: whole("block-interval-ms", BLOCK_INTERVAL_BOUNDS_MS),
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
  const value = parseWhole(text, BLOCK_INTERVAL_BOUNDS_MS);
  if (value !== undefined) return value;
  const allowed = allowedNumbers(BLOCK_INTERVAL_BOUNDS_MS);
  throw new CliError("USAGE", `--block-interval-ms must be ${allowed}, not "${text}".`);
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
