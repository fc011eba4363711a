/** What every request is held against beside its API file: HTTP's own rules, and ours for keys and paths. */
import type { IncomingMessage } from "node:http";
import type { Request, RequestHandler } from "express";
import { isJsonType } from "./http-body.js";
import { requestError } from "./http-errors.js";
import type { HttpRoute } from "./http-route.js";

/** What stands before the path where a client takes the server for a proxy. */
const ORIGIN = /^https?:\/\/[^/?#]+/i;

/**
 * Makes a target with scheme and host (absolute-form; RFC 9112, 3.2.2, wants it taken) the path and query
 * that it means, which is what everything behind looks at, and what signatures are over.
 */
export function takeOriginForm(request: IncomingMessage): void {
  const { url } = request;
  if (url === undefined || url.startsWith("/")) return;
  const [origin] = ORIGIN.exec(url) ?? [];
  if (origin === undefined) return;
  const rest = url.slice(origin.length);
  request.url = rest.startsWith("/") ? rest : `/${rest}`;
}

/**
 * Whether Host is there as HTTP wants it (RFC 9112, 3.2): once, and only before 1.1 not at all. Of two, Node
 * shows the first; whoever had the request on its way may have gone by the other one.
 */
function hasOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let count = 0;
  for (let place = 0; place < rawHeaders.length; place += 2) {
    if (rawHeaders[place]?.toLowerCase() === "host") count += 1;
  }
  return count === 1 || (count === 0 && httpVersion !== "1.1");
}

/**
 * Whether a body comes as it is or in chunks. Node undoes no other coding: it takes `gzip, chunked`
 * for chunks alone: whoever had the request on its way may have read another body in it.
 */
function hasPlainBody({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return /^(chunked)?$/i.test(headers["transfer-encoding"] ?? "");
}

/** What others may have read in another way in a head; undefined where there is nothing. */
export function ambiguityOf(request: IncomingMessage): string | undefined {
  if (!hasOneHost(request)) return "one Host header is needed";
  if (!hasPlainBody(request)) return "the only Transfer-Encoding that is taken is chunked";
  return undefined;
}

/** Before the body is read. @throws INVALID_REQUEST */
export function checkHeaders(request: IncomingMessage): void {
  const { headers } = request;
  const ambiguity = ambiguityOf(request);
  if (ambiguity !== undefined) throw requestError(400, ambiguity);
  // Joined to one they would be another key than the same one alone: a repeat would be paid again.
  // The distinct ones are made when they are asked for, of all headers.
  const hasKey = headers["idempotency-key"] !== undefined;
  if (hasKey && (request.headersDistinct["idempotency-key"]?.length ?? 0) > 1) {
    const path = "/headers/idempotency-key";
    throw requestError(400, "Idempotency-Key must come once", { path });
  }
  const packing = headers["content-encoding"];
  if (packing !== undefined && !/^identity$/i.test(packing)) {
    const message = "bodies are taken as they are, without a Content-Encoding";
    throw requestError(415, message, { path: "/headers/content-encoding" });
  }
}

/** What a route itself says of headers. */
export function headerCheck({ checkHead }: HttpRoute): RequestHandler {
  return ({ headers }, _response, next) => {
    checkHead?.(headers);
    next();
  };
}

/**
 * Leaves of the types that a client names what an API file tells apart: JSON, anything else, none. The
 * validator reads them in time that grows with the square of their length, and keeps what it compiled for
 * each one for ever. No answer depends on Accept.
 */
export function foldTypes({ headers }: Pick<IncomingMessage, "headers">): void {
  const type = headers["content-type"];
  delete headers.accept;
  if (type === undefined) return;
  headers["content-type"] = isJsonType(type) ? "application/json" : "application/octet-stream";
}

/** NUL characters in path and query; the router refuses malformed escapes. @throws INVALID_REQUEST */
export function checkUrl({ originalUrl, path }: Request): void {
  if (/%00/.test(originalUrl)) throw requestError(400, "NUL characters are not allowed", { path });
}

/** A whole number as a query says it, of which no database says that it has no room for it. */
const WHOLE_NUMBER = /^-?[0-9]{1,18}$/;

/**
 * What the validator lets pass of a query. Of a name with a bracket, which no API file has, it makes the name
 * before it, and drops it where that is none: the filter that was meant would not be there. Numbers it takes
 * as JavaScript reads them, and no bound of an API file holds `Infinity`, which `1e999` is, too: a page of
 * that limit was the whole table.
 * @throws INVALID_REQUEST
 */
export function checkQuery({ originalUrl, query }: Pick<Request, "originalUrl" | "query">): void {
  const at = originalUrl.indexOf("?");
  if (at < 0) return;
  const texts = new URLSearchParams(originalUrl.slice(at));
  for (const name of texts.keys()) {
    if (name.includes("[")) throw refusedField(name, `Unknown query parameter '${name}'`);
  }
  for (const [name, value] of Object.entries(query)) {
    const text = texts.get(name);
    if (typeof value !== "number" || text === null) continue;
    if (WHOLE_NUMBER.test(text)) continue;
    throw refusedField(name, `request/query/${name} must be a whole number`);
  }
}

function refusedField(name: string, message: string): Error {
  return requestError(400, message, { path: `/query/${name}` });
}
