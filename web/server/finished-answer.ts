/** Finished answers: bytes with the headers that every page has, sent once they are whole. */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";

/** A finished answer. */
export interface FinishedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly etag: string;
  /** True where it can never change. */
  readonly isFinal: boolean;
}

/** Nothing of strangers, nothing inline, no frames, no forms that lead away. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** What every page tells a browser to keep to. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  // Strangers learn nothing; "no-referrer" would make browsers hide the origin of the pages' own forms.
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
};

/** Names the content of an answer. */
export function etagOf(body: Uint8Array): string {
  return `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"`;
}

/** Whether a client that sends `If-None-Match` has it already (RFC 9110, weak comparison). */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch
    .split(",")
    .some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
}

/** Sets headers on a response. */
export function setHeaders(
  response: ServerResponse,
  headers: Readonly<Record<string, string>>,
): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
}

/** Sends an answer; to who has it already, that nothing changed. */
export function sendAnswer(
  answer: FinishedAnswer,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  setHeaders(response, { "x-content-type-options": "nosniff", ...answer.headers });
  if (answer.etag !== "") response.setHeader("etag", answer.etag);
  if (answer.etag !== "" && isKnown(request.headers["if-none-match"], answer.etag)) {
    response.writeHead(304).end();
    return;
  }
  response.writeHead(answer.status, { "content-length": answer.body.length });
  response.end(answer.body);
}
