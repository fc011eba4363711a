/** Reads a proof of reserves, of this form or a former one; nothing in it is checked against anything yet. */
import { schemaFaultText } from "../../../runtime/config/schema-faults.js";
import { fileCause } from "../../errors.js";
import { parseLightBlock } from "../balance/bundle.js";
import { AuditError } from "../errors.js";
import { linesOf } from "../json-lines.js";
import { parseFormerReserves } from "./former-reserves.js";
import {
  accountSchema,
  headSchema,
  nodeSchema,
  RESERVES_FORMAT,
  type ReserveAccount,
  type ReservesContents,
  type ReservesFile,
} from "./reserves-file.js";
import { StateNodes } from "./state-nodes.js";

/**
 * Longest line, and longest document of a former release: a text of JavaScript has no more. A head with a
 * thousand headers stays far below.
 */
const MAX_CHARACTERS = 500_000_000;

/** The file of a path. @throws BUNDLE_UNREADABLE naming the line or the field */
export function readReservesFile(path: string): Promise<ReservesFile> {
  return parseReserves(linesOf(path, { maxLength: MAX_CHARACTERS, tooLong }), path);
}

/**
 * The lines of a file as typed values.
 * @param name of the file, for people
 * @throws BUNDLE_UNREADABLE naming the line or the field
 */
export async function parseReserves(
  lines: AsyncIterable<string> | Iterable<string>,
  name = "The file",
): Promise<ReservesFile> {
  return read(lines, name, async (reader) => {
    const first = await reader.next();
    const head = documentOf(first);
    // Former releases wrote one document over many lines; some programs put it into one.
    if (formatOf(head) !== RESERVES_FORMAT) {
      return parseFormerReserves(head ?? JSON.parse(first + (await reader.rest())));
    }
    const contents = await parseLines(head, reader);
    return { ...contents, format: RESERVES_FORMAT, path: contents.path.map(parseLightBlock) };
  });
}

/** The file of a path as what it was written from, to be written again. @throws BUNDLE_UNREADABLE likewise */
export function readReservesContents(path: string): Promise<ReservesContents> {
  return read(linesOf(path, { maxLength: MAX_CHARACTERS, tooLong }), path, async (reader) =>
    parseLines(documentOf(await reader.next()), reader),
  );
}

async function read<T>(
  lines: AsyncIterable<string> | Iterable<string>,
  name: string,
  parse: (reader: LineReader) => Promise<T>,
): Promise<T> {
  const reader = new LineReader(lines);
  try {
    return await parse(reader);
  } catch (cause) {
    throw new AuditError("BUNDLE_UNREADABLE", faultOf(cause, { name, place: reader.place }), {
      cause,
    });
  } finally {
    await reader.close();
  }
}

async function parseLines(document: unknown, reader: LineReader): Promise<ReservesContents> {
  const { format: _, ...counted } = headSchema.parse(document);
  const { nodes: nodeCount, accounts: accountCount, ...head } = counted;
  const nodes = new StateNodes();
  for (let count = 0; count < nodeCount; count += 1) {
    nodes.add(nodeSchema.parse(JSON.parse(await reader.next())));
  }
  const accounts: ReserveAccount[] = [];
  for (let count = 0; count < accountCount; count += 1) {
    accounts.push(accountSchema.parse(JSON.parse(await reader.next())));
  }
  if ((await reader.rest()) !== "") throw new RangeError("there are lines behind its end");
  return { ...head, nodes, accounts };
}

/** Undefined for a part of a document. */
function documentOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // Of a document that goes on; what is none at all is said of the whole.
  }
}

function formatOf(document: unknown): unknown {
  const isObject = typeof document === "object" && document !== null;
  return isObject && "format" in document ? document.format : undefined;
}

function faultOf(
  cause: unknown,
  { name, place }: { readonly name: string; readonly place: number },
): string {
  if (cause instanceof Error && "syscall" in cause) {
    return `Cannot read ${name}: ${fileCause(cause)}.`;
  }
  const where = place > 1 ? `line ${place}: ` : "";
  return `${name} is no proof of reserves (${RESERVES_FORMAT}): ${where}${schemaFaultText(cause)}.`;
}

/** Lines one after the other, counted. */
class LineReader {
  readonly #lines: AsyncIterator<string> | Iterator<string>;
  #place = 0;

  constructor(lines: AsyncIterable<string> | Iterable<string>) {
    this.#lines =
      Symbol.asyncIterator in lines ? lines[Symbol.asyncIterator]() : lines[Symbol.iterator]();
  }

  /** Number of the line that was read last, from 1. */
  get place(): number {
    return this.#place;
  }

  /** @throws RangeError where there is none */
  async next(): Promise<string> {
    const step = await this.#lines.next();
    if (step.done === true) throw new RangeError("it breaks off");
    this.#place += 1;
    return step.value;
  }

  /** What is left, without line ends. @throws RangeError where that is longer than any proof */
  async rest(): Promise<string> {
    const parts: string[] = [];
    let length = 0;
    for (;;) {
      const step = await this.#lines.next();
      if (step.done === true) return parts.join("");
      parts.push(step.value);
      length += step.value.length;
      if (length > MAX_CHARACTERS) throw tooLong();
    }
  }

  async close(): Promise<void> {
    await this.#lines.return?.();
  }
}

function tooLong(): RangeError {
  return new RangeError("it is too long for a proof of its kind");
}
