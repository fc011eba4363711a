/**
 * `causeway start`: one node in the foreground, in this very process, so that the signals that a
 * supervisor or a test sends (SIGTERM, SIGKILL, SIGSTOP) reach the node and nobody in between.
 */
import type { NODE_PROCESS } from "../../node/compose/process.js";
import type { Environment } from "../../runtime/config/config.js";
import { readLogLevel } from "../../runtime/config/log-level.js";
import type {
  ProcessContext,
  ProcessDefinition,
  Service,
} from "../../runtime/process/lifecycle.js";
import { runProcess } from "../../runtime/process/lifecycle.js";
import { createLogger } from "../../runtime/process/logger.js";
import { type HomePaths, homePaths, isKitHome } from "../home/home.js";
import { homeLost, lockHome } from "../home/home-lock.js";
import { assertOneNode } from "../home/network/one-node.js";
import { withEvm } from "../home/evm-choice.js";
import { skippedHeights, withSkips } from "../home/skip-choice.js";
import { handOverAt, type NodeStart, resumeHandOver } from "../upgrade/hand-over.js";
import type { MetPlan } from "../upgrade/next-environment.js";

/** What the command line says. */
export interface StartOptions {
  readonly home: string;
  /** The text of the flag; undefined takes the ports as the home's files name them. */
  readonly portOffset: string | undefined;
  /** Which EVM executes blocks; undefined: as the settings say. */
  readonly evm: string | undefined;
  /** Heights of planned upgrades that are given up, beside those that the settings name. */
  readonly skipUpgrades: readonly string[];
  readonly env: Environment;
  /** Fires when the command is stopped before there is a node. */
  readonly signal: AbortSignal;
  /** One line for people; standard output belongs to the log. */
  readonly warn: (line: string) => void;
}

/**
 * Hands the process over to the node: the promise does not settle then, the node ends the process. Where a
 * release has taken over at an upgrade that this one does not know, that is started in this one's place.
 * @returns the exit code of such a release
 * @throws HOME_INCOMPLETE where there is no node's home, HOME_UNUSABLE where it cannot be read, USAGE where
 * there are some in it
 */
export async function runStart(options: StartOptions): Promise<number> {
  const paths = homePaths(options.home);
  assertOneNode(paths);
  const start = nodeStart(paths, options);
  const log = createLogger({ component: "upgrade", level: readLogLevel(options.env) ?? "info" });
  const code = await resumeHandOver(start, log);
  if (code !== undefined) return code;
  await warnOfVariables(options);
  if (isKitHome(paths)) {
    options.warn(
      `${paths.home} is a kit's home: this starts its node alone, without the exchange side; ` +
        "`npm start` starts everything.",
    );
  }
  // Loaded here: no other command needs the node's code, and it takes long to load.
  const { NODE_PROCESS } = await import("../../node/compose/process.js");
  const { portOffset } = options;
  runProcess(nodeOf(paths, NODE_PROCESS, { ...options, start }), [
    "--home",
    paths.home,
    ...offsetFlags(portOffset),
  ]);
  return new Promise<never>(() => undefined);
}

/** Of those that somebody meant for a setting, and that are none. */
async function warnOfVariables({ env, warn }: StartOptions): Promise<void> {
  // Loaded here: a program that hands over at once stays as small as it can.
  const { strangeVariables, strangeVariableText } = await import("../home/strange-variables.js");
  for (const name of strangeVariables(env)) warn(strangeVariableText(name));
}

/** What a release that goes on in the place of this one is started with: the same. */
function nodeStart({ home }: HomePaths, options: StartOptions): NodeStart {
  const { portOffset, evm, skipUpgrades, env, signal, warn } = options;
  const flags = [
    "--home",
    home,
    ...offsetFlags(portOffset),
    ...(evm === undefined ? [] : ["--evm", evm]),
    ...(skipUpgrades.length === 0 ? [] : ["--skip-upgrade", ...skipUpgrades]),
  ];
  const skipped = () => skippedHeights({ home, env }, skipUpgrades);
  return { home, flags, skipped, env, signal, warn };
}

function offsetFlags(portOffset: string | undefined): readonly string[] {
  return portOffset === undefined ? [] : ["--port-offset", portOffset];
}

/** The node; a kit's home is locked against its kit as long as it runs. */
function nodeOf(
  paths: HomePaths,
  node: typeof NODE_PROCESS,
  options: Pick<StartOptions, "evm" | "skipUpgrades" | "warn"> & { readonly start: NodeStart },
): ProcessDefinition {
  const { evm, skipUpgrades, warn, start } = options;
  const chosen = ({ home, env }: Pick<ProcessContext, "home" | "env">) =>
    withSkips({ home, env: withEvm(env, evm) }, skipUpgrades);
  return {
    name: node.name,
    settings: (given) => node.settings?.({ ...given, env: chosen(given) }),
    async start(given: ProcessContext): Promise<readonly Service[]> {
      const onUpgradeNeeded = once((plan: MetPlan) => void handOverAt(plan, start, given));
      const context = { ...given, env: chosen(given), onUpgradeNeeded };
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

/** The node tells of the plan that stops it each time it looks. */
function once<T>(hear: (told: T) => void): (told: T) => void {
  let isTold = false;
  return (told) => {
    if (!isTold) hear(told);
    isTold = true;
  };
}
