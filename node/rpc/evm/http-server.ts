/** 8545: JSON-RPC over HTTP on `node:http`, without a framework. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import {
  type Exchanged,
  listen,
  readBody,
  type RpcServer,
  sendPieces,
  sendText,
  stopServer,
} from "../http-listener.js";
import { USUAL_CONNECTIONS } from "../connection-bounds.js";
import type { EvmApi } from "./api.js";
import type { Reply } from "./batch-reply.js";
import type { EvmServerOptions } from "./options.js";
import { discardRest } from "../../../runtime/http/http-body.js";
import { isAllowedOrigin } from "../../../runtime/http/readers.js";
import { RequestContext } from "./request-context.js";

/** How long a browser may keep the answer to its preflight. */
const PREFLIGHT_SECONDS = "600";

/** What a page may send that does not say what it wants to. */
const USUAL_HEADERS = "Content-Type, Accept, Authorization";

/** Longest list of headers that is repeated to a page, which may send them all then. */
const MAX_HEADER_LIST = 1_024;

type Headers = Readonly<Record<string, string>>;

const NO_HEADERS: Headers = {};

/**
 * Starts the server.
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function startEvmHttpServer(
  api: EvmApi,
  options: EvmServerOptions,
): Promise<RpcServer> {
  const { memory } = options;
  const server = createServer((request, response) => {
    const cors = corsHeaders(request.headers.origin, options.allowedOrigins);
    switch (request.method) {
      case "POST":
        post(api, cors, { request, response, memory });
        return;
      case "GET":
      case "HEAD":
        sendText(response, 200, "ok\n", cors);
        return;
      case "OPTIONS":
        preflight(cors, request.headers["access-control-request-headers"], response);
        return;
      default:
        sendText(response, 405, "method not allowed\n", { Allow: "GET, HEAD, OPTIONS, POST" });
    }
  });
  server.maxConnections = options.maxConnections ?? USUAL_CONNECTIONS.evmHttp;
  const address = await listen(server, {
    name: "EVM JSON-RPC",
    listen: options.listen,
    log: api.log,
  });
  return { name: "evm-http", address, stop: () => stopServer(server) };
}

function corsHeaders(origin: string | undefined, allowed: readonly string[]): Headers {
  if (origin === undefined || !isAllowedOrigin(origin, allowed)) return NO_HEADERS;
  if (allowed.includes("*")) return { "Access-Control-Allow-Origin": "*" };
  return { "Access-Control-Allow-Origin": origin, Vary: "Origin" };
}

/** @param asked the headers that the page's library wants to send */
function preflight(cors: Headers, asked: string | undefined, response: ServerResponse): void {
  if (cors === NO_HEADERS) {
    response.writeHead(204).end();
    return;
  }
  const isRepeated = asked !== undefined && isHeaderList(asked);
  const named = isRepeated ? asked : USUAL_HEADERS;
  const origin = "Vary" in cors ? ["Origin"] : [];
  const vary = [...origin, ...(isRepeated ? ["Access-Control-Request-Headers"] : [])];
  response.writeHead(204, {
    ...cors,
    "Access-Control-Allow-Methods": "POST, GET, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": named,
    "Access-Control-Max-Age": PREFLIGHT_SECONDS,
    ...(vary.length > 0 && { Vary: vary.join(", ") }),
  });
  response.end();
}

/** Names of headers with commas between, no more of them than a page could need. */
function isHeaderList(text: string): boolean {
  return text.length <= MAX_HEADER_LIST && /^[\w-]+(?:, ?[\w-]+)*$/.test(text);
}

/**
 * JSON in any spelling, or no type at all where no browser asks. Form and text types are refused, and bytes
 * without one from a page: a browser sends those across origins without asking first, with Origin and, to
 * this machine, Sec-Fetch-Site.
 */
function hasJsonType(headers: IncomingHttpHeaders): boolean {
  const type = headers["content-type"] ?? "";
  if (type !== "") return /^[^;]*json/i.test(type);
  return headers.origin === undefined && headers["sec-fetch-site"] === undefined;
}

function post(api: EvmApi, cors: Headers, exchanged: Exchanged): void {
  const { request, response } = exchanged;
  const refuse = (status: number, text: string) => sendText(response, status, text, cors);
  if (!hasJsonType(request.headers)) {
    discardRest(request, response);
    refuse(415, "invalid content type, only application/json is supported\n");
    return;
  }
  if (Number(request.headers["content-length"] ?? 0) > api.limits.batchBodyBytes) {
    discardRest(request, response);
    refuse(413, "content length too large\n");
    return;
  }
  readBody(
    exchanged,
    (first) => api.dispatcher.bodyLimitBytes(first),
    (body) => {
      if (body === "too large") {
        refuse(413, "content length too large\n");
        return;
      }
      if (body === "no room") {
        refuse(503, "too many large requests at once, try again\n");
        return;
      }
      const context = new RequestContext(api.limits.requestTimeoutMs, undefined, request.socket);
      const reply = api.dispatcher.handle(body, context);
      if (reply instanceof Promise) {
        response.once("close", () => context.cancel());
        void reply.then((done) => sendReply(exchanged, cors, done, context));
      } else {
        sendReply(exchanged, cors, reply, context);
      }
    },
  );
}

function sendReply(
  exchanged: Exchanged,
  cors: Headers,
  reply: Reply,
  context: RequestContext,
): void {
  const { response } = exchanged;
  context.finish();
  if (response.destroyed) return;
  if (reply === undefined) {
    response.writeHead(204, cors);
    response.end();
    return;
  }
  sendPieces(exchanged, 200, reply, cors);
}
