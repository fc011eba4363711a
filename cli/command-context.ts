/** What every command of `causeway` is given, and the one form of its JSON documents. */
import type { Environment } from "../runtime/config/config.js";

/** What every command is given. */
export interface CommandContext {
  readonly home: string;
  readonly portOffset: number;
  /** Print one JSON document instead of text. */
  readonly json: boolean;
  readonly env: Environment;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
}

/** Version of the JSON documents; a change that breaks readers raises it. */
const SCHEMA_VERSION = 1;

/**
 * The JSON document of a command with `--json`, on one line; what is counted in `bigint`, such as amounts,
 * is a decimal string and never a number.
 * @param value an object, no list: its fields stand beside `schemaVersion`
 */
export function toJson(value: object): string {
  return JSON.stringify({ schemaVersion: SCHEMA_VERSION, ...value }, (_key, entry: unknown) =>
    typeof entry === "bigint" ? entry.toString() : entry,
  );
}

/** Prints such a document. */
export function printJson(context: CommandContext, value: Readonly<Record<string, unknown>>): void {
  context.print(toJson(value));
}
