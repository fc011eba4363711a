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

/**
 * Reads `--home DIR` and `--port-offset N` of a process of the kit.
 * @throws INVALID_ARGUMENT
 */
export function parseProcessArguments(
  argv: readonly string[],
  env: Environment,
): { readonly home: string; readonly portOffset: number } {
  let values: { readonly home?: string; readonly "port-offset"?: string };
  try {
    ({ values } = parseArgs({
      args: [...argv],
      options: { home: { type: "string" }, "port-offset": { type: "string" } },
    }));
  } catch (cause) {
    throw new ArgumentError("INVALID_ARGUMENT", errorMessage(cause), { cause });
  }
  if (values.home === "") throw new ArgumentError("INVALID_ARGUMENT", "--home needs a folder");
  const named = env["CAUSEWAY_HOME"] === "" ? undefined : env["CAUSEWAY_HOME"];
  const home = resolve(values.home ?? named ?? ".causeway");
  const text = values["port-offset"];
  if (text === undefined) {
    return { home, portOffset: readPortOffset(home, OFFSET_FILES) };
  }
  return { home, portOffset: parsePortOffset(text) };
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
