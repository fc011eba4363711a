/**
 * 26657: the part of CometBFT's RPC that says how the node is. `GET /status` and `GET /health`,
 * and the same two by `POST /` with JSON-RPC. Shapes and encodings are CometBFT's: 64-bit numbers
 * as strings, hashes in upper case.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { errorMessage } from "../../../chain/errors.js";
import type { Logger } from "../../../runtime/logger.js";
import {
  listen,
  type ListenAddress,
  readBody,
  type RpcServer,
  sendText,
  stopServer,
} from "../http-listener.js";
import { type CometStatusOptions, cometStatus } from "./status.js";

/** What the server needs: the status' sources, and where to listen. */
export interface CometServerOptions extends CometStatusOptions {
  readonly listen: ListenAddress;
  readonly log: Logger;
}

/** Largest request body: CometBFT's `max_body_bytes`. */
const MAX_BODY_BYTES = 1_000_000;

/** Largest batch: as for the EVM JSON-RPC (D16). */
const MAX_BATCH_ENTRIES = 1_000;

/** Connections at once; integrators may hold at least 500. */
const MAX_CONNECTIONS = 1_024;

/** The id of answers to GET requests. */
const URI_ID = -1;

type RequestId = string | number | null;

interface CometError {
  readonly code: number;
  readonly message: string;
  readonly data?: string;
}

type Handlers = ReadonlyMap<string, () => unknown>;

/**
 * Starts the server.
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function startCometServer(options: CometServerOptions): Promise<RpcServer> {
  const handlers: Handlers = new Map<string, () => unknown>([
    ["health", () => ({})],
    ["status", () => cometStatus(options)],
  ]);
  const server = createServer((request, response) => {
    if (request.method === "GET" || request.method === "HEAD") {
      get(handlers, request, response, options.log);
    } else if (request.method === "POST") {
      post(handlers, request, response, options.log);
    } else {
      sendText(response, 405, "method not allowed\n", { Allow: "GET, HEAD, POST" });
    }
  });
  server.maxConnections = MAX_CONNECTIONS;
  const address = await listen(server, "consensus RPC", options.listen);
  return { name: "comet-rpc", address, stop: () => stopServer(server) };
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  sendText(response, status, JSON.stringify(value), { "Content-Type": "application/json" });
}

function answer(id: RequestId, body: { result: unknown } | { error: CometError }) {
  return { jsonrpc: "2.0", id, ...body };
}

function run(handlers: Handlers, name: string, id: RequestId, log: Logger) {
  const handler = handlers.get(name);
  if (handler === undefined) {
    return answer(id, { error: { code: -32601, message: "Method not found" } });
  }
  try {
    return answer(id, { result: handler() });
  } catch (error) {
    log.error({ err: error, method: name }, "consensus RPC method failed");
    const data = errorMessage(error);
    return answer(id, { error: { code: -32603, message: "Internal error", data } });
  }
}

function get(
  handlers: Handlers,
  request: IncomingMessage,
  response: ServerResponse,
  log: Logger,
): void {
  const name = (request.url ?? "/").split("?")[0]?.slice(1) ?? "";
  if (name === "") {
    const routes = [...handlers.keys()].map((route) => `/${route}`).join("\n");
    sendText(response, 200, `Available endpoints:\n${routes}\n`);
    return;
  }
  if (!handlers.has(name)) {
    sendText(response, 404, "404 page not found\n");
    return;
  }
  const reply = run(handlers, name, URI_ID, log);
  sendJson(response, "error" in reply ? 500 : 200, reply);
}

function post(
  handlers: Handlers,
  request: IncomingMessage,
  response: ServerResponse,
  log: Logger,
): void {
  readBody(
    request,
    () => MAX_BODY_BYTES,
    (body) => {
      if (body === undefined) {
        sendText(response, 413, "request body too large\n");
        return;
      }
      const reply = answerBody(handlers, body, log);
      if (reply === undefined) {
        response.writeHead(204);
        response.end();
      } else {
        sendJson(response, 200, reply);
      }
    },
  );
}

function answerBody(handlers: Handlers, body: Buffer, log: Logger): unknown {
  let message: unknown;
  try {
    message = JSON.parse(body.toString("utf8"));
  } catch (error) {
    const data = `error unmarshaling request: ${errorMessage(error)}`;
    return answer(null, { error: { code: -32700, message: "Parse error. Invalid JSON", data } });
  }
  if (!Array.isArray(message)) return answerEntry(handlers, message, log);
  if (message.length > MAX_BATCH_ENTRIES) {
    const data = `batch of more than ${MAX_BATCH_ENTRIES} requests`;
    return answer(null, { error: { code: -32600, message: "Invalid Request", data } });
  }
  const replies = message.flatMap((entry: unknown) => {
    const reply = answerEntry(handlers, entry, log);
    return reply === undefined ? [] : [reply];
  });
  return replies.length === 0 ? undefined : replies;
}

function invalid(id: RequestId, data: string) {
  return answer(id, { error: { code: -32600, message: "Invalid Request", data } });
}

/** The answer to one request; undefined for a notification. */
function answerEntry(handlers: Handlers, message: unknown, log: Logger): unknown {
  if (typeof message !== "object" || message === null || Array.isArray(message)) {
    return invalid(null, "expected an object");
  }
  const id = "id" in message ? message.id : undefined;
  if (id === undefined) return undefined;
  if (id !== null && typeof id !== "string" && typeof id !== "number") {
    return invalid(null, "id is no string or number");
  }
  if (!("method" in message) || typeof message.method !== "string") {
    return invalid(id, "method is missing");
  }
  return run(handlers, message.method, id, log);
}
