/** What a form sends: fields, and files as texts, within a bound for each and one for all. */
import type { IncomingMessage } from "node:http";
import { readBody } from "../../runtime/http/http-body.js";
import { HttpError } from "../../runtime/http/http-errors.js";
import { badRequest, PageError } from "../../web/errors.js";

/** Fields and files of one form. */
const MAX_FIELDS = 64;

/** Bytes before the content of a field of a form in parts. */
const MAX_FIELD_HEAD_BYTES = 4_096;

const FORM_TYPE = /^(application\/x-www-form-urlencoded|multipart\/form-data)\s*(;|$)/i;

/** Bytes of all forms that are read or worked on: some of the largest, or very many small ones. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;

/** What a form counts at least: there are buffers and strings around it. */
const MIN_COUNTED_BYTES = 64 * 1024;

/** Room for forms in memory, over all connections: a bound for each is none where there are thousands. */
export class FormRoom {
  private heldBytes = 0;

  constructor(private readonly maxBytes = MAX_HELD_BYTES) {}

  /**
   * Does what needs a form's bytes while there is room for them.
   * @param maxFormBytes what a form without a length may have
   * @throws BUSY
   */
  async run<T>(request: IncomingMessage, maxFormBytes: number, work: () => Promise<T>): Promise<T> {
    const declared = request.headers["content-length"];
    const sizeBytes = declared === undefined ? maxFormBytes : Number(declared);
    const countedBytes = Math.min(maxFormBytes, Math.max(MIN_COUNTED_BYTES, sizeBytes));
    if (this.heldBytes + countedBytes > this.maxBytes) {
      throw new PageError("BUSY", "too many forms are sent at once", {
        retriable: true,
        details: { retryAfterSeconds: 5 },
      });
    }
    this.heldBytes += countedBytes;
    try {
      return await work();
    } finally {
      this.heldBytes -= countedBytes;
    }
  }
}

/**
 * Reads a form (`application/x-www-form-urlencoded` or `multipart/form-data`); the first of several
 * fields of one name that is not empty counts.
 * @throws TOO_LARGE, BAD_REQUEST
 */
export async function readForm(
  request: IncomingMessage,
  maxBytes: number,
): Promise<URLSearchParams> {
  const type = request.headers["content-type"] ?? "";
  if (!FORM_TYPE.test(type)) {
    request.resume();
    throw badRequest("only forms are taken");
  }
  const body = await bodyOf(request, maxBytes);
  const fields = new URLSearchParams();
  const sent = await parse(body, type);
  let count = 0;
  for (const [name, value] of sent) {
    count += 1;
    if (count > MAX_FIELDS) throw badRequest("too many fields");
    const text = typeof value === "string" ? value : await value.text();
    if (text !== "" && !fields.has(name)) fields.set(name, text);
  }
  return fields;
}

/** The fields of a form that a page knows, as they were sent. */
export function sentQuery(sent: URLSearchParams, names: readonly string[]): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of names) {
    const value = sent.get(name);
    if (value !== null && value !== "") query.set(name, value);
  }
  return query;
}

async function bodyOf(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  try {
    return await readBody(request, maxBytes);
  } catch (cause) {
    request.resume();
    if (cause instanceof HttpError && cause.status === 413) {
      throw new PageError("TOO_LARGE", `the form is larger than ${maxBytes} bytes`, { cause });
    }
    throw badRequest("the form broke off");
  }
}

async function parse(body: Buffer, type: string): Promise<FormData | URLSearchParams> {
  if (/^application/i.test(type)) return new URLSearchParams(body.toString("utf8"));
  checkParts(body, type);
  try {
    const headers = { "content-type": type };
    return await new Response(new Uint8Array(body), { headers }).formData();
  } catch {
    throw badRequest("the form cannot be read");
  }
}

/**
 * The boundary of a type that names one, once, and in letters that need no escaping: where the parser could
 * read another one out of it, the parts of that one would not be counted.
 */
function boundaryOf(type: string): string | undefined {
  const named = type.match(/boundary=/gi)?.length ?? 0;
  const found = /;\s*boundary=("?)([\w'()+,./:=?-]{1,70})\1\s*(?:;|$)/i.exec(type)?.[2];
  return named === 1 ? found : undefined;
}

/** Very many parts and heads without an end would keep the parser busy: they are counted first. */
function checkParts(body: Buffer, type: string): void {
  const boundary = boundaryOf(type);
  if (boundary === undefined) throw badRequest("the form names no boundary, or not plainly");
  const delimiter = Buffer.from(`--${boundary}`, "latin1");
  let count = 0;
  for (let at = body.indexOf(delimiter); at >= 0; at = body.indexOf(delimiter, at + 1)) {
    count += 1;
    if (count > MAX_FIELDS + 1) throw badRequest("too many fields");
    const start = at + delimiter.length;
    const isLast = body[start] === 0x2d && body[start + 1] === 0x2d;
    const head = body.subarray(start, start + MAX_FIELD_HEAD_BYTES);
    if (!isLast && !head.includes("\r\n\r\n")) throw badRequest("the form cannot be read");
  }
}
