/**
 * Names of what an answer tells, so that who has it is not sent it again (RFC 9110, 8.8.3 and 13.1.2).
 * Weak ones: `meta`, which is about the index and not about what was asked for, is not in them.
 */
import { createHash } from "node:crypto";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";

/** Paths of what never changes once it is there; other answers are new with each block. */
const FINAL_PATHS: ReadonlySet<string> = new Set(["/v1/blocks/{id}"]);

/** A store has to ask each time: `latest` is another block soon, and an index can be made anew. */
const CACHE_CONTROL = "no-cache";

/** The routes; those of final things name what they tell, and say 304 to who knows the name. */
export function withEntityTags(routes: readonly HttpRoute[]): readonly HttpRoute[] {
  return routes.map((route) =>
    route.method !== "get" || !FINAL_PATHS.has(route.path)
      ? route
      : {
          ...route,
          handler: async (request) =>
            tagged(await route.handler(request), request.headers["if-none-match"]),
        },
  );
}

function tagged(reply: HttpReply, known: string | undefined): HttpReply {
  const { body, status = 200 } = reply;
  if (status !== 200 || typeof body !== "object" || body === null) return reply;
  const etag = entityTag(body);
  const headers = { ...reply.headers, etag, "cache-control": CACHE_CONTROL };
  return known !== undefined && knows(known, etag)
    ? { status: 304, headers }
    : { ...reply, headers };
}

function entityTag(body: object): string {
  const { meta: _meta, ...told } = { meta: undefined, ...body };
  const digest = createHash("sha256").update(JSON.stringify(told)).digest("base64url");
  return `W/"${digest}"`;
}

/** By weak comparison: the same text between the quotes. */
function knows(header: string, etag: string): boolean {
  if (header.trim() === "*") return true;
  return (header.match(/"[^"]*"/g) ?? []).some((one) => `W/${one}` === etag);
}
