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
  /** Prints a line that may be too long for one text: its parts are taken as they are written. */
  readonly printParts?: (parts: Iterable<string>) => Promise<void>;
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

/** Characters of a long document that are written at a time. */
const PART_CHARACTERS = 65_536;

/**
 * Prints such a document with a last member of so many entries that no text, and no memory, holds it whole:
 * the engine's texts end at half a gigabyte.
 * @param entries of the member; no name twice
 */
export async function printLongJson(
  context: CommandContext,
  value: Readonly<Record<string, unknown>>,
  {
    member,
    entries,
  }: { readonly member: string; readonly entries: Iterable<readonly [string, string]> },
): Promise<void> {
  const parts = longJson(toJson(value), member, entries);
  if (context.printParts === undefined) context.print([...parts].join(""));
  else await context.printParts(parts);
}

function* longJson(
  document: string,
  member: string,
  entries: Iterable<readonly [string, string]>,
): Generator<string> {
  let part = `${document.slice(0, -1)},${JSON.stringify(member)}:{`;
  let comma = "";
  for (const [name, text] of entries) {
    part += `${comma}${JSON.stringify(name)}:${JSON.stringify(text)}`;
    comma = ",";
    if (part.length < PART_CHARACTERS) continue;
    yield part;
    part = "";
  }
  yield `${part}}}`;
}
