/**
 * One POST to a URL that a client of ours chose: to public addresses alone, over TLS, to the very
 * address that was checked, without following where an answer points, within bounds of time and size.
 */
import * as http from "node:http";
import * as https from "node:https";
import { isIP } from "node:net";
import { AppError, errorCode } from "../../../chain/errors.js";
import { limitedSignal } from "../../process/task.js";
import { createHostResolver, type ResolveHost } from "./host-resolver.js";
import { isLoopbackAddress, isPublicAddress } from "./public-address.js";

/**
 * INVALID_TARGET: a URL that is never posted to; FORBIDDEN_TARGET: its host has an address that is
 * not public; TARGET_UNREACHABLE: no connection, or it broke; TARGET_TIMEOUT: no answer in time.
 */
export type PostErrorCode =
  | "INVALID_TARGET"
  | "FORBIDDEN_TARGET"
  | "TARGET_UNREACHABLE"
  | "TARGET_TIMEOUT";

/** A POST that had no answer. */
export class PostError extends AppError<PostErrorCode> {}

/** Whether loopback addresses, and http to them, are allowed beside the public internet. */
export interface TargetRules {
  readonly allowLoopback: boolean;
}

/** Finds all addresses of a host name. */
export type { ResolveHost } from "./host-resolver.js";

/** A POST. */
export interface GuardedPost extends TargetRules {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** From the look-up of the name to the head of the answer. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Default: the system's DNS servers are asked. */
  readonly resolve?: ResolveHost;
}

/** The head of an answer, and as much of its body as a person wants to see. */
export interface PostAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** First bytes of the body as text; the rest is never read. */
  readonly excerpt: string;
}

/** Longest URL that is kept. */
const MAX_URL_LENGTH = 2_048;

/** Ports below are other services' than web servers'. */
const FIRST_FREE_PORT = 1_024;
const HTTPS_PORT = 443;
const HTTP_PORT = 80;

/** Addresses of one name that are tried. */
const MAX_ADDRESSES = 4;

/** Most time for a connection to an address behind which there is another one: packets may be lost. */
const CONNECT_TIMEOUT_MS = 2_000;

const resolveByDns = createHostResolver();

/** Enough for a sentence of an error page; what follows is cut off with the connection. */
const EXCERPT_BYTES = 512;

/** Time for those bytes, once the head is there: the status is what counts. */
const EXCERPT_TIMEOUT_MS = 1_000;

/**
 * A URL that may be posted to as far as its text tells: https without user and password, on port 443
 * or above 1023; http to a loopback host where that is allowed. Names are judged by their addresses,
 * at each POST.
 * @throws INVALID_TARGET, FORBIDDEN_TARGET
 */
export function parseTarget(text: string, { allowLoopback }: TargetRules): URL {
  if (text.length > MAX_URL_LENGTH) throw invalid(`is longer than ${MAX_URL_LENGTH} characters`);
  if (!URL.canParse(text)) throw invalid("is no URL");
  const url = new URL(text);
  // Written out, characters beyond ASCII are several: this is the text that is kept and parsed again.
  if (url.href.length > MAX_URL_LENGTH)
    throw invalid(`is longer than ${MAX_URL_LENGTH} characters`);
  if (url.username !== "" || url.password !== "") throw invalid("must not hold a password");
  if (url.hash !== "") throw invalid("must not have a fragment");
  const host = hostOf(url);
  // The URL parser takes "https://..." as it stands, which is a placeholder and no name.
  if (/^\.|\.\./.test(host)) throw invalid("names no host");
  const isLocal = allowLoopback && (isLoopbackAddress(host) || host === "localhost");
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLocal)) {
    throw invalid(allowLoopback ? "must be https, or http to loopback" : "must be https");
  }
  const port = url.port === "" ? HTTPS_PORT : Number(url.port);
  // Nobody listens on port 0: whoever was told it has seen the one that a system was to choose.
  if (port === 0 || (!isLocal && port !== HTTPS_PORT && port < FIRST_FREE_PORT)) {
    throw invalid(`has port ${port}: 443 and ports from ${FIRST_FREE_PORT} on are allowed`);
  }
  if (isIP(host) !== 0) checkAddress(host, { allowLoopback });
  return url;
}

/**
 * Posts once. Any status is an answer, redirects included.
 * @throws INVALID_TARGET, FORBIDDEN_TARGET, TARGET_UNREACHABLE, TARGET_TIMEOUT; the signal's reason
 */
export async function guardedPost(post: GuardedPost): Promise<PostAnswer> {
  const { allowLoopback } = post;
  // Looked at again: a setting may have changed since the URL was taken.
  const url = parseTarget(post.url.href, { allowLoopback });
  const signal = limitedSignal([post.signal], post.timeoutMs);
  try {
    const addresses = await withSignal(signal, resolveTarget(url, { ...post, signal }));
    const shareMs = Math.min(CONNECT_TIMEOUT_MS, post.timeoutMs / addresses.length);
    for (const [index, address] of addresses.entries()) {
      const isLast = index === addresses.length - 1;
      try {
        const connectMs = isLast ? undefined : shareMs;
        return await exchange({ ...post, url, address, signal, connectMs });
      } catch (error) {
        if (signal.aborted || isLast) throw error;
      }
    }
    throw new PostError("TARGET_UNREACHABLE", "the host has no address", { retriable: true });
  } catch (error) {
    post.signal.throwIfAborted();
    if (!signal.aborted) throw error;
    const message = `no answer within ${post.timeoutMs} ms`;
    throw new PostError("TARGET_TIMEOUT", message, { retriable: true, cause: error });
  }
}

/** The addresses of the host, all of them allowed: one that is not makes the name suspicious. */
async function resolveTarget(url: URL, post: GuardedPost): Promise<readonly string[]> {
  const host = hostOf(url);
  if (isIP(host) !== 0) return [host];
  const resolve = post.resolve ?? resolveByDns;
  const found = await resolve(host, post.signal).catch((cause: unknown) => {
    const message = `the host's name has no address (${errorCode(cause)})`;
    throw new PostError("TARGET_UNREACHABLE", message, { retriable: true, cause });
  });
  // Clear text stays on this machine.
  const rules = { allowLoopback: post.allowLoopback };
  for (const address of found) {
    checkAddress(address, rules);
    if (url.protocol === "http:" && !isLoopbackAddress(address)) throw forbidden(address);
  }
  return found.slice(0, MAX_ADDRESSES);
}

function checkAddress(address: string, { allowLoopback }: TargetRules): void {
  if (isPublicAddress(address) || (allowLoopback && isLoopbackAddress(address))) return;
  throw forbidden(address);
}

/**
 * One request on a connection of its own to one checked address.
 * @param request.connectMs when a connection that is not made is given up; undefined with the whole post
 */
function exchange(
  request: GuardedPost & { readonly address: string; readonly connectMs: number | undefined },
): Promise<PostAnswer> {
  const { url, address, signal, connectMs } = request;
  const isSecure = url.protocol === "https:";
  const host = hostOf(url);
  const options: https.RequestOptions = {
    method: "POST",
    // The address, not the name: nothing is resolved a second time.
    host: address,
    port: url.port === "" ? (isSecure ? HTTPS_PORT : HTTP_PORT) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    agent: false,
    signal,
    headers: {
      ...request.headers,
      host: url.host,
      "content-length": Buffer.byteLength(request.body),
      connection: "close",
    },
    // The certificate is held against the name that was asked for.
    ...(isSecure && isIP(host) === 0 ? { servername: host } : {}),
  };
  return new Promise((resolve, reject) => {
    const sent = isSecure ? https.request(options) : http.request(options);
    if (connectMs !== undefined) {
      const timer = setTimeout(() => sent.destroy(), connectMs);
      sent.once("socket", (socket) => socket.once("connect", () => clearTimeout(timer)));
      sent.once("close", () => clearTimeout(timer));
    }
    sent.on("error", (cause) => reject(unreachable(cause)));
    // Where another protocol is to follow (101), Node closes without an answer and without a fault.
    sent.on("close", () => reject(unreachable(undefined)));
    sent.on("response", (response) => {
      const { statusCode: status = 0, headers } = response;
      resolve(
        readExcerpt(response)
          .then((excerpt) => ({ status, retryAfter: headers["retry-after"], excerpt }))
          .finally(() => sent.destroy()),
      );
    });
    sent.end(request.body, "utf8");
  });
}

/** The first bytes of a body; a body that is slow or breaks off is no fault. */
function readExcerpt(response: http.IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = () => {
      clearTimeout(timer);
      response.removeAllListeners("data");
      resolve(Buffer.concat(chunks).subarray(0, EXCERPT_BYTES).toString("utf8"));
    };
    const timer = setTimeout(finish, EXCERPT_TIMEOUT_MS);
    response.on("data", (chunk: Buffer) => {
      chunks.push(chunk.subarray(0, EXCERPT_BYTES));
      size += chunk.length;
      if (size >= EXCERPT_BYTES) finish();
    });
    response.once("end", finish);
    response.once("error", finish);
    response.once("close", finish);
  });
}

/** Waits for work that knows no signal; what it comes to later is dropped. */
function withSignal<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** Host without the brackets of IPv6 literals. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}

function unreachable(cause: unknown): PostError {
  const message = `no connection, or it broke (${errorCode(cause)})`;
  return new PostError("TARGET_UNREACHABLE", message, { retriable: true, cause });
}

function invalid(what: string): PostError {
  return new PostError("INVALID_TARGET", `the URL ${what}`);
}

function forbidden(address: string): PostError {
  // RFC 6052 and RFC 8215: who asks a DNS64 gets it for a host that has IPv4 alone.
  const why = /^64:ff9b:/i.test(address) ? ": NAT64, made up by the DNS64 of this network" : "";
  const message = `the host has the address ${address}, which is not one of the public internet${why}`;
  return new PostError("FORBIDDEN_TARGET", message, { details: { address } });
}
