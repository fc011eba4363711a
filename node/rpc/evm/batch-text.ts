/**
 * Requests out of their text. Those of a large batch in slices: one `JSON.parse` of 25 MB would hold
 * up the thread that decides blocks for a fifth of a second.
 */
import { breathe } from "../../../runtime/process/main-thread.js";
import type { WorkOwner } from "../../../runtime/process/work-owner.js";
import { hasTooManyValues } from "../json-text.js";

/** How a batch is bounded. */
export interface BatchTextLimits {
  readonly entries: number;
  /** Largest request of a batch: as large as one that comes alone. */
  readonly entryBytes: number;
  /** Whether a value is one of which the client waits for an answer. */
  isCall(entry: unknown): boolean;
}

/** The requests, or what is wrong with the batch. */
export type BatchText =
  | { readonly entries: readonly unknown[] }
  | { readonly fault: "malformed" | "too large" }
  | { readonly fault: "too many"; readonly firstCall: unknown };

/** Bytes that are looked through between two looks at the time. */
const STEP_BYTES = 16_384;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** An id for which JavaScript has no exact number, as the client wrote it: the answer repeats it. */
export class WrittenId {
  constructor(readonly text: string) {}
}

/**
 * One request as `JSON.parse` reads it; an id that this would round is a `WrittenId`.
 * @throws SyntaxError
 */
export function parseRequestText(body: Buffer): unknown {
  const request: unknown = JSON.parse(body.toString("utf8"));
  return isRounded(request) ? { ...request, id: new WrittenId(idTextOf(body)) } : request;
}

/** Whether the id that was written may be another number than the one that was read. */
export function isRounded(request: unknown): request is { readonly id: number } {
  if (typeof request !== "object" || request === null || !("id" in request)) return false;
  return typeof request.id === "number" && !Number.isSafeInteger(request.id);
}

/** What stands for the id in the text of an object; the last one counts, as for `JSON.parse`. */
function idTextOf(body: Buffer): string {
  let text = "";
  const take = (from: number, to: number) => {
    const quote = body.indexOf(QUOTE, from);
    const end = endOfText(body, quote) + 1;
    if (JSON.parse(body.toString("utf8", quote, end)) !== "id") return;
    text = body.toString("utf8", body.indexOf(COLON, end) + 1, to).trim();
  };
  let [depth, from] = [0, 0];
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte === QUOTE) at = endOfText(body, at);
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) depth++;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--;
    const isEnd = depth === 0 && byte === CLOSE_OBJECT;
    if (!isEnd && (depth !== 1 || byte !== COMMA)) continue;
    take(from, at);
    from = at + 1;
  }
  return text;
}

/**
 * Reads a JSON array of any values; where there are too many, up to the first call. What it takes and
 * refuses is what `JSON.parse` takes and refuses, and each value is read by `parseRequestText`.
 * @param body begins with "[", but for white space
 * @param owner who sent it
 */
export async function parseBatchText(
  body: Buffer,
  limits: BatchTextLimits,
  owner?: WorkOwner,
): Promise<BatchText> {
  const places = await placesOf(body, limits, owner);
  if ("fault" in places) return places;
  const entries: unknown[] = [];
  for (const { from, to } of places.list) {
    await breathe(undefined, owner);
    const entry = body.subarray(from, to);
    if (hasTooManyValues(entry)) return { fault: "too large" };
    let request: unknown;
    try {
      request = parseRequestText(entry);
    } catch {
      return { fault: "malformed" };
    }
    if (!places.isCut) entries.push(request);
    else if (limits.isCall(request)) return { fault: "too many", firstCall: request };
  }
  return places.isCut ? { fault: "too many", firstCall: undefined } : { entries };
}

interface Place {
  readonly from: number;
  readonly to: number;
}

/** Where the values lie: between the commas of the outermost list; it is cut where they are too many. */
async function placesOf(
  body: Buffer,
  limits: BatchTextLimits,
  owner: WorkOwner | undefined,
): Promise<
  | { readonly list: readonly Place[]; readonly isCut: boolean }
  | { readonly fault: "malformed" | "too large" }
> {
  const start = body.indexOf(OPEN_LIST) + 1;
  const list: Place[] = [];
  let [depth, from, at, breatheAt] = [1, start, start, start + STEP_BYTES];
  for (; at < body.length && depth > 0; at++) {
    if (at >= breatheAt) {
      await breathe(undefined, owner);
      breatheAt = at + STEP_BYTES;
    }
    const byte = body[at];
    if (byte === QUOTE) {
      at = endOfText(body, at);
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      depth++;
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
      depth--;
    } else if (byte === COMMA && depth === 1) {
      if (at - from > limits.entryBytes) return { fault: "too large" };
      if (list.push({ from, to: at }) >= limits.entries) return { list, isCut: true };
      from = at + 1;
    }
  }
  // After the loop `at` is behind the bracket that ended it.
  if (depth > 0 || body[at - 1] !== CLOSE_LIST || !isBlank(body, at, body.length)) {
    return { fault: "malformed" };
  }
  if (at - from > limits.entryBytes) return { fault: "too large" };
  const isEmpty = list.length === 0 && isBlank(body, from, at - 1);
  if (!isEmpty) list.push({ from, to: at - 1 });
  return { list, isCut: false };
}

/** Place of the quote that ends a text; the body's end where there is none. */
function endOfText(body: Buffer, quote: number): number {
  for (let end = body.indexOf(QUOTE, quote + 1); end >= 0; end = body.indexOf(QUOTE, end + 1)) {
    let slashes = 0;
    while (body[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return body.length;
}

function isBlank(body: Buffer, from: number, to: number): boolean {
  return /^[ \t\r\n]*$/.test(body.toString("latin1", from, to));
}
