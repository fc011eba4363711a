/** What reading an open API takes beside GET: HEAD, and pages of other origins where these are allowed. */
import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * True when the origin is listed, or all are ("*"). Entries are read as CometBFT, the SDK's gateway and
 * go-ethereum read them: in either case, with one `*` for any text; a slash at the end means nothing.
 */
export function isAllowedOrigin(origin: string, allowed: readonly string[]): boolean {
  const asking = origin.toLowerCase();
  return allowed.some((entry) => fits(asking, entry.toLowerCase().replace(/\/$/, "")));
}

function fits(origin: string, pattern: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return origin === pattern;
  const [start, end] = [pattern.slice(0, star), pattern.slice(star + 1)];
  const isLongEnough = origin.length >= start.length + end.length;
  return isLongEnough && origin.startsWith(start) && origin.endsWith(end);
}

/** Headers of answers that pages of other origins may read. */
const EXPOSED =
  "ETag, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Content-SHA256";

/** What a browser is told before it asks. */
const PREFLIGHT = {
  "access-control-allow-methods": "GET, HEAD, POST",
  "access-control-allow-headers": "Content-Type, If-None-Match, Last-Event-ID",
  "access-control-max-age": "600",
};

/** Responses to HEAD, whose requests the routes see as GET. */
const HEAD_ONLY = new WeakSet<ServerResponse>();

/** Whether the client asked for the head alone. */
export function isHeadOnly(response: ServerResponse): boolean {
  return HEAD_ONLY.has(response);
}

/**
 * Makes an open API's first look at a request. Without origins there is nothing of CORS in its answers.
 * @returns answers what browsers ask beforehand, and then true: there is nothing more to do
 */
export function createReaders(origins: readonly string[]) {
  return (request: IncomingMessage, response: ServerResponse): boolean => {
    // The response was made for a HEAD: of what GET would say it sends no body.
    if (request.method === "HEAD") {
      request.method = "GET";
      HEAD_ONLY.add(response);
    }
    if (origins.length === 0) return false;
    const { origin } = request.headers;
    if (!origins.includes("*")) response.appendHeader("vary", "Origin");
    if (origin === undefined || !isAllowedOrigin(origin, origins)) return false;
    response.setHeader("access-control-allow-origin", origins.includes("*") ? "*" : origin);
    response.setHeader("access-control-expose-headers", EXPOSED);
    const isAsked = request.headers["access-control-request-method"] !== undefined;
    if (request.method !== "OPTIONS" || !isAsked) return false;
    request.resume();
    response.writeHead(204, PREFLIGHT).end();
    return true;
  };
}
