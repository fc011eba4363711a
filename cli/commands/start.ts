/**
 * `causeway start`: one node in the foreground, in this very process, so that the signals that a
 * supervisor or a test sends (SIGTERM, SIGKILL, SIGSTOP) reach the node and nobody in between.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../chain/errors.js";
import type {
  ProcessContext,
  ProcessDefinition,
  Service,
} from "../../runtime/process/lifecycle.js";
import { runProcess } from "../../runtime/process/lifecycle.js";
import { CliError } from "../errors.js";
import { type HomePaths, homePaths, isKitHome, isNodeHome } from "../home/home.js";
import { homeLost, lockHome } from "../home/home-lock.js";
import { kitNodes } from "../home/network/kit-nodes.js";
import { withEvm } from "../home/evm-choice.js";
import { withSkips } from "../home/skip-choice.js";

/** What the command line says. */
export interface StartOptions {
  readonly home: string;
  /** The text of the flag; undefined takes the ports as the home's files name them. */
  readonly portOffset: string | undefined;
  /** Which EVM executes blocks; undefined: as the settings say. */
  readonly evm: string | undefined;
  /** Heights of planned upgrades that are given up, beside those that the settings name. */
  readonly skipUpgrades: readonly string[];
  /** One line for people; standard output belongs to the log. */
  readonly warn: (line: string) => void;
}

/** A home that this user may not read is no reason to make another one. */
function assertMissing(file: string): void {
  try {
    statSync(file);
  } catch (cause) {
    const code = errorCode(cause) ?? "";
    if (code === "ENOENT" || code === "ENOTDIR") return;
    throw new CliError("HOME_UNUSABLE", `${file} cannot be read (${code})`, { cause });
  }
}

/**
 * Hands the process over to the node: the promise never settles, the node ends the process.
 * @throws HOME_INCOMPLETE where there is no node's home, HOME_UNUSABLE where it cannot be read, USAGE where
 * there are some in it
 */
export async function runStart(options: StartOptions): Promise<never> {
  const paths = homePaths(options.home);
  if (!isNodeHome(paths)) {
    const homes = nodeHomesIn(paths.home);
    if (homes.length > 0) throw severalNodes(paths.home, homes);
    assertMissing(paths.genesis);
    throw new CliError(
      "HOME_INCOMPLETE",
      `${paths.home} is no node's home (${paths.genesis} is missing): make one with ` +
        "`causeway init --network ...` or `causeway testnet`.",
    );
  }
  if (isKitHome(paths)) {
    const nodes = kitNodes(paths.home);
    if (nodes.length > 1) {
      throw severalNodes(
        paths.home,
        nodes.map(({ home }) => home),
      );
    }
    options.warn(
      `${paths.home} is a kit's home: this starts its node alone, without the exchange side; ` +
        "`npm start` starts everything.",
    );
  }
  // Loaded here: no other command needs the node's code, and it takes long to load.
  const { NODE_PROCESS } = await import("../../node/compose/process.js");
  const { portOffset } = options;
  const ports = portOffset === undefined ? [] : ["--port-offset", portOffset];
  runProcess(nodeOf(paths, NODE_PROCESS, options), ["--home", paths.home, ...ports]);
  return new Promise<never>(() => undefined);
}

/** Homes of nodes right in a folder, as `causeway testnet` writes them; none where it cannot be read. */
function nodeHomesIn(folder: string): readonly string[] {
  try {
    const inside = readdirSync(folder).map((name) => join(folder, name));
    return inside.filter((home) => isNodeHome(homePaths(home))).toSorted();
  } catch {
    return [];
  }
}

function severalNodes(folder: string, homes: readonly string[]): CliError {
  const named = homes.join(", ");
  return new CliError("USAGE", `${folder} has homes of nodes in it; name one of them: ${named}.`);
}

/** The node; a kit's home is locked against its kit as long as it runs. */
function nodeOf(
  paths: HomePaths,
  node: ProcessDefinition,
  { evm, skipUpgrades, warn }: Pick<StartOptions, "evm" | "skipUpgrades" | "warn">,
): ProcessDefinition {
  const chosen = ({ home, env }: Pick<ProcessContext, "home" | "env">) =>
    withSkips({ home, env: withEvm(env, evm) }, skipUpgrades);
  return {
    name: node.name,
    settings: (given) => node.settings?.({ ...given, env: chosen(given) }),
    async start(given: ProcessContext): Promise<readonly Service[]> {
      const context = { ...given, env: chosen(given) };
      const lock = isKitHome(paths) ? await lockHome(paths.lock, paths.home) : undefined;
      const onLost = (): void => {
        // An orderly end would write into a home that is another's.
        warn(homeLost(paths.home).message);
        process.exit(1);
      };
      lock?.lost.addEventListener("abort", onLost, { once: true });
      try {
        const services = await node.start(context);
        if (lock === undefined) return services;
        return [{ name: "home lock", stop: () => lock.release() }, ...services];
      } catch (error) {
        await lock?.release();
        throw error;
      }
    },
  };
}
