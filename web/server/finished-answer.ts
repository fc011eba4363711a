/** Finished answers: bytes with the headers that every page has, sent once they are whole. */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** A finished answer. */
export interface FinishedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The body in gzip, for clients that take it; undefined where it was not worth it. */
  readonly packed?: Buffer | undefined;
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

/** Shorter bodies fit into a packet as they are. */
const MIN_PACKED_BYTES = 1_400;

/**
 * The answer with its body in gzip beside it, made off the event loop. Only for what is the same to
 * every reader: the length of a packed page with a secret in it tells of the secret.
 */
export async function packAnswer(answer: FinishedAnswer): Promise<FinishedAnswer> {
  if (answer.body.length < MIN_PACKED_BYTES) return answer;
  const packed = await promisify(gzip)(answer.body);
  return packed.length < answer.body.length ? { ...answer, packed } : answer;
}

/** Whether a client that sends `Accept-Encoding` takes gzip (RFC 9110, section 12.5.3). */
function takesGzip(acceptEncoding: string | undefined): boolean {
  let isTaken = false;
  for (const part of (acceptEncoding ?? "").toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((word) => word.trim());
    const isWanted = !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    if (name === "gzip" || name === "x-gzip") return isWanted;
    if (name === "*") isTaken = isWanted;
  }
  return isTaken;
}

/** Bodies that differ have tags that differ, packed ones too. */
const PACKED_MARK = "-gzip";

/** The tag of the packed body. */
function packedTag(etag: string): string {
  return `${etag.slice(0, -1)}${PACKED_MARK}"`;
}

/**
 * Whether a client that sends `If-None-Match` has it already, packed or not (RFC 9110, weak
 * comparison).
 */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch
    .split(",")
    .map((tag) => tag.trim().replace(/^W\//, ""))
    .some((tag) => tag === "*" || tag === etag || tag === packedTag(etag));
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
  const { packed, etag } = answer;
  const isPacked = packed !== undefined && takesGzip(request.headers["accept-encoding"]);
  if (packed !== undefined) {
    const { vary } = answer.headers;
    response.setHeader("vary", vary === undefined ? "Accept-Encoding" : `${vary}, Accept-Encoding`);
  }
  if (etag !== "") response.setHeader("etag", isPacked ? packedTag(etag) : etag);
  if (etag !== "" && isKnown(request.headers["if-none-match"], etag)) {
    response.writeHead(304).end();
    return;
  }
  if (isPacked) response.setHeader("content-encoding", "gzip");
  const body = isPacked ? packed : answer.body;
  response.writeHead(answer.status, { "content-length": body.length });
  response.end(body);
}
