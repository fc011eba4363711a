/** Options that all commands of `causeway` share, and how a command is run. */
import { type Command, Option } from "commander";
import { ConfigError, type Environment } from "../runtime/config/config.js";
import type { CommandContext } from "./command-context.js";
import { keptByNpm } from "./home/npm-flags.mjs";

/** Options that every command takes, also after its name. */
export interface SharedOptions {
  readonly home?: string;
  readonly portOffset?: string;
  readonly json?: boolean;
}

/** Runs a command's work and sets the exit code. */
export type Runner = <O extends SharedOptions>(
  work: (context: CommandContext, own: O) => Promise<number>,
) => (own: O) => Promise<void>;

/** Options that all commands have. */
export function addShared(command: Command): Command {
  return command
    .addOption(new Option("--home <dir>", "home folder (else CAUSEWAY_HOME, else .causeway)"))
    .addOption(new Option("--port-offset <n>", "port offset (else the one of the home)"))
    .addOption(new Option("--json", "print one JSON document"));
}

/** Options of a command by which a person decides: beside the shared ones a reason, and who it is. */
export function addDecision(command: Command): Command {
  return addShared(command)
    .requiredOption("--reason <text>", "why, kept for ever")
    .option("--operator <name>", "who decides, for the record (else the user)");
}

/** Where a command works: a script that names it has a second one added to it, and the last one counts. */
const PLACES: ReadonlySet<string> = new Set(["home", "port-offset"]);

/**
 * Refuses flags of a command, and of those below it, that are typed twice with different values: the last
 * one would count and the first be forgotten, without a word. Not those that gather their values.
 */
export function refuseRepeats(command: Command): void {
  for (const option of command.options) {
    const isGathered = option.variadic || option.parseArg !== undefined;
    if (option.isBoolean() || isGathered || PLACES.has(option.name())) continue;
    let given: string | undefined;
    command.on(`option:${option.name()}`, (value?: string) => {
      if (given !== undefined && given !== value) {
        command.error(
          `error: ${option.long ?? option.flags} is given twice, and one alone would count; where it ` +
            "takes a list, its parts are separated by commas",
        );
      }
      given = value;
    });
  }
  for (const below of command.commands) refuseRepeats(below);
}

/** How flags name a folder or a file. */
const PATH_VALUE = /<(dir|file)(\.\.\.)?>$/;

/**
 * Refuses an empty text for a folder or a file, as of a variable of a script that was never set: what is
 * written there would lie wherever somebody stands, keys among it.
 */
export function refuseEmptyPaths(command: Command): void {
  for (const option of command.options) {
    if (!PATH_VALUE.test(option.flags)) continue;
    command.on(`option:${option.name()}`, (value?: string) => {
      if (value !== "") return;
      command.error(`error: ${option.long ?? option.flags} is empty: it names a folder or a file`);
    });
  }
  for (const below of command.commands) refuseEmptyPaths(below);
}

/** Names of all flags of a command and those below it, without the dashes, each once. */
export function flagsOf(command: Command): readonly string[] {
  const own = command.options.map(({ long }) => long?.replace(/^--/, "") ?? "");
  const below = command.commands.flatMap((one) => flagsOf(one));
  return [...new Set([...own, ...below])].filter((name) => name !== "");
}

/**
 * Refuses a start in which npm has kept flags of a command, or of those below it, for itself.
 * @throws ConfigError
 */
export function refuseKept(command: Command, env: Environment): void {
  const lost = keptByNpm(env, flagsOf(command), "npm run causeway");
  if (lost.length > 0) throw new ConfigError(lost);
}

/** Exit code of a check that could not be made. */
export const NOT_MADE = 2;

/** Commands whose exit code 1 says that something is false. */
const JUDGING = new WeakSet<Command>();

/**
 * A command whose exit code 1 says that something is false: a word of its own command line that it does not
 * know is not that, nor is a node or a database that does not answer, and ends with 2. Commands that are made
 * below it afterwards do the same.
 */
export function judging(command: Command): Command {
  JUDGING.add(command);
  return command.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : NOT_MADE));
}

/** Exit code of a command that ends by a fault. */
export function faultCodeOf(command: Command | null): number {
  if (command === null) return 1;
  return JUDGING.has(command) ? NOT_MADE : faultCodeOf(command.parent);
}
