/** The command line of `npm start`. */
import { parseArgs } from "node:util";
import { errorMessage } from "../chain/errors.js";
import { parsePortOffset } from "../runtime/lifecycle.js";
import { CliError } from "./errors.js";

/** What the reader asked for. */
export interface KitArguments {
  readonly home: string | undefined;
  readonly portOffset: number | undefined;
  /** Do the main job once, check it, end. */
  readonly once: boolean;
  /** Start without doing the main job. */
  readonly noDemo: boolean;
  /** Block interval of a chain that is made now. */
  readonly blockIntervalMs: number | undefined;
  readonly help: boolean;
}

/** Text of `npm start -- --help`. */
export const KIT_HELP = `Usage: npm start [-- OPTIONS]

Starts a local network (testnet ids, fresh genesis), both sidecar APIs, the deposit watcher, the
withdrawal worker and PostgreSQL, and does the main job once: a deposit is credited, a withdrawal
is paid. The next start continues the same chain and the same ledger.

  --home DIR             folder for keys, settings and data (else CAUSEWAY_HOME, else .causeway)
  --port-offset N        add N to every port, for kits side by side
  --once                 do the main job, check it against chain and ledger, then end
  --no-demo              only start
  --block-interval-ms N  time between blocks of a new chain (default 2000)
  --help                 show this text

Environment: DATABASE_URL uses that PostgreSQL, REDIS_URL puts the queue on that Redis.
Ctrl-C or SIGTERM stops everything within 10 s.`;

/** Bounds of the block interval, as in the genesis file. */
const MIN_INTERVAL_MS = 50;
const MAX_INTERVAL_MS = 60_000;

/**
 * Reads the arguments of the kit.
 * @throws USAGE, INVALID_ARGUMENT
 */
export function parseKitArguments(argv: readonly string[]): KitArguments {
  const { values } = readValues(argv);
  if (values.once === true && values["no-demo"] === true) {
    throw new CliError("USAGE", "--once and --no-demo exclude each other.");
  }
  const offset = values["port-offset"];
  const interval = values["block-interval-ms"];
  return {
    home: values.home,
    portOffset: offset === undefined ? undefined : parsePortOffset(offset),
    once: values.once === true,
    noDemo: values["no-demo"] === true,
    blockIntervalMs: interval === undefined ? undefined : parseBlockInterval(interval),
    help: values.help === true,
  };
}

/**
 * Reads `--block-interval-ms`.
 * @throws USAGE
 */
export function parseBlockInterval(text: string): number {
  const value = /^[0-9]{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= MIN_INTERVAL_MS && value <= MAX_INTERVAL_MS) return value;
  throw new CliError(
    "USAGE",
    `--block-interval-ms must be a whole number from ${MIN_INTERVAL_MS} to ${MAX_INTERVAL_MS}.`,
  );
}

function readValues(argv: readonly string[]): {
  values: {
    home?: string;
    "port-offset"?: string;
    "block-interval-ms"?: string;
    once?: boolean;
    "no-demo"?: boolean;
    help?: boolean;
  };
} {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        home: { type: "string" },
        "port-offset": { type: "string" },
        "block-interval-ms": { type: "string" },
        once: { type: "boolean" },
        "no-demo": { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (cause) {
    throw new CliError("USAGE", `${errorMessage(cause)} (see --help)`, { cause });
  }
}
