/** What a form sends: fields, and files as texts, within a bound. */
import type { IncomingMessage } from "node:http";
import { readBody } from "../../runtime/http/http-body.js";
import { HttpError } from "../../runtime/http/http-errors.js";
import { badRequest, PageError } from "../../web/errors.js";

/** Fields and files of one form. */
const MAX_FIELDS = 64;

const FORM_TYPE = /^(application\/x-www-form-urlencoded|multipart\/form-data)\s*(;|$)/i;

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
  try {
    const headers = { "content-type": type };
    return await new Response(new Uint8Array(body), { headers }).formData();
  } catch {
    throw badRequest("the form cannot be read");
  }
}
