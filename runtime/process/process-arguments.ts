/** The command line of a process of the kit. */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { AppError, errorMessage } from "../../chain/errors.js";
import { type Environment, MAX_PORT_OFFSET, readPortOffset } from "../config/config.js";

/** Codes of faults in the command line. */
export type ArgumentErrorCode = "INVALID_ARGUMENT";

/** A command line that cannot be understood. */
export class ArgumentError extends AppError<ArgumentErrorCode> {}

/** What a person does about a port that somebody else listens on. */
export const TAKEN_PORT_REMEDY = "Free the port or use --port-offset N.";

/** Settings files that tell the home's port offset, in the order they are asked. */
const OFFSET_FILES = [
  "app",
  "sidecar",
  "watcher",
  "worker",
  "indexer",
  "explorer",
  "console",
  "config",
];

const OPTIONS = { home: { type: "string" }, "port-offset": { type: "string" } } as const;

/** What a process is told on its command line. */
export interface ProcessArguments {
  readonly home: string;
  readonly portOffset: number;
  /** Why it cannot be understood; home and offset are as far as they can then. */
  readonly fault: ArgumentError | undefined;
}

/** Reads `--home DIR` and `--port-offset N` of a process of the kit. */
export function readProcessArguments(argv: readonly string[], env: Environment): ProcessArguments {
  const args = [...argv];
  const { home: folder, "port-offset": offset } = parseArgs({
    args,
    options: OPTIONS,
    strict: false,
  }).values;
  const flag = typeof folder === "string" && folder !== "" ? folder : undefined;
  const named = env["CAUSEWAY_HOME"] === "" ? undefined : env["CAUSEWAY_HOME"];
  const home = resolve(flag ?? named ?? ".causeway");
  let portOffset = readPortOffset(home, OFFSET_FILES);
  try {
    parseArgs({ args, options: OPTIONS });
    if (folder === "") throw new ArgumentError("INVALID_ARGUMENT", "--home needs a folder");
    if (typeof offset === "string") portOffset = parsePortOffset(offset);
    return { home, portOffset, fault: undefined };
  } catch (cause) {
    const isOurs = cause instanceof ArgumentError;
    const fault = isOurs
      ? cause
      : new ArgumentError("INVALID_ARGUMENT", errorMessage(cause), { cause });
    return { home, portOffset, fault };
  }
}

/**
 * Reads the value of `--port-offset`.
 * @throws INVALID_ARGUMENT
 */
export function parsePortOffset(text: string): number {
  const portOffset = Number(text);
  if (!/^[0-9]{1,5}$/.test(text) || portOffset > MAX_PORT_OFFSET) {
    throw new ArgumentError(
      "INVALID_ARGUMENT",
      `--port-offset must be a whole number from 0 to ${MAX_PORT_OFFSET}, not "${text}"`,
      { details: { value: text } },
    );
  }
  return portOffset;
}
