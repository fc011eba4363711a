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

/** Prints a JSON document on one line. */
export function printJson(context: CommandContext, value: Readonly<Record<string, unknown>>): void {
  context.print(JSON.stringify({ schemaVersion: SCHEMA_VERSION, ...value }));
}
