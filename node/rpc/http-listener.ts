/** What the node's plain `node:http` servers share: listening, body reading, ending. */
import { formatListenAddress, type ListenAddress } from "../../runtime/config/config-values.js";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Server as SocketServer } from "node:net";
import { AppError, errorCode, errorMessage } from "../../chain/errors.js";
import { CollectedBytes } from "../../runtime/http/collected-bytes.js";
import { boundConnections } from "../../runtime/http/connections/client-connections.js";
import { endServer } from "../../runtime/http/connections/ending.js";
import { outliveUntaken } from "../../runtime/http/connections/listening.js";
import { discardRest } from "../../runtime/http/http-body.js";
import { PipelineBound } from "../../runtime/http/connections/pipeline.js";
import { endSocket, sendJson } from "../../runtime/http/http-reply.js";
import { ambiguityOf, takeOriginForm } from "../../runtime/http/request-checks.js";
import {
  COUNTED_BYTES,
  type Holding,
  holdUntilAnswered,
  holdUntilClosed,
} from "../../runtime/http/held-bytes.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { ClientMemory } from "./client-memory.js";
import { MOST_CONNECTIONS } from "./connection-bounds.js";

/** A listening server; `stop` is safe to call more than once. */
export interface RpcServer {
  readonly name: string;
  /** The address really bound, with the port that was chosen for port 0. */
  readonly address: ListenAddress;
  stop(): Promise<void>;
}

/** Codes of faults while a server starts. */
export type RpcServerErrorCode = "PORT_TAKEN" | "LISTEN_FAILED";

/** A server could not listen; the message names host and port. */
export class RpcServerError extends AppError<RpcServerErrorCode> {}

/**
 * Time that open requests get to finish when a server stops, and clients of WebSockets to answer a close
 * frame. The kit kills a node that has not ended after a second and a half (`cli/supervisor/kit.ts`).
 */
export const STOP_GRACE_MS = 1_000;

/** Time for a client to send its headers and body; slower ones are cut off. */
const REQUEST_TIMEOUT_MS = 30_000;

/** Longer than the 60 s of common balancers, so that they close first. */
const KEEP_ALIVE_MS = 65_000;

/** The body of a refusal of what is no request, for servers whose users look for no other form. */
const plainRefusal = (message: string): unknown => ({ message });

/** Who listens where. */
export interface Listener {
  /** For messages: "EVM JSON-RPC". */
  readonly name: string;
  readonly listen: ListenAddress;
  readonly log: Pick<Logger, "warn">;
}

/**
 * Binds the server. Connections beyond its `maxConnections` are refused, and of one client of another machine
 * those beyond its part.
 * @param refusal the body of what cannot be read, and of what can be read in two ways
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function listen(
  server: Server,
  listener: Listener,
  refusal = plainRefusal,
): Promise<ListenAddress> {
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  boundConnections(server, { most: server.maxConnections || MOST_CONNECTIONS, isOpen: true });
  refuseAmbiguous(server, refusal);
  server.prependListener("request", takeOriginForm);
  boundPipelines(server, refusal);
  return bind(server, listener);
}

/** Statuses of what cannot be read that are not 400. */
const UNREAD_STATUS: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
};

/**
 * Keeps from the server what others may have read in another way: a cache or guard before it would
 * have looked at another request than the one that is carried out.
 */
function refuseAmbiguous(server: Server, refusal: typeof plainRefusal): void {
  const handlers = server.listeners("request");
  server.removeAllListeners("request");
  server.on("request", (request, response) => {
    const ambiguity = ambiguityOf(request);
    if (ambiguity === undefined) {
      for (const handle of handlers) handle.call(server, request, response);
      return;
    }
    discardRest(request, response);
    sendJson(response, 400, refusal(ambiguity));
  });
}

/**
 * Bounds what one connection asks without waiting, and says of what cannot be read so behind the answers
 * to what came before: Node by itself says it at once and closes, and whoever has sent a transaction takes
 * that for its answer, and the transaction for refused.
 */
function boundPipelines(server: Server, refusal: typeof plainRefusal): void {
  const pipelines = new PipelineBound();
  server.prependListener("request", (request, response) => {
    pipelines.count(request, response);
    // Bodies are read of no other method; the end of a request that is not read is not seen.
    if (request.method !== "POST") request.resume();
  });
  server.on("clientError", (error, socket) => {
    const status = UNREAD_STATUS[errorCode(error)] ?? 400;
    const message = "the request cannot be read";
    pipelines.refuseUnread(socket, () => endSocket(socket, status, refusal(message)));
  });
}

/**
 * The part of `listen` that any server of connections needs.
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function bind(
  server: SocketServer,
  { name, listen: wanted, log }: Listener,
): Promise<ListenAddress> {
  await new Promise<void>((resolve, reject) => {
    const onError = (cause: Error) => {
      const place = formatListenAddress(wanted);
      const taken = errorCode(cause) === "EADDRINUSE";
      const text = taken
        ? `${name} cannot listen: ${place} is taken`
        : `${name} cannot listen on ${place}: ${errorMessage(cause)}`;
      const code = taken ? "PORT_TAKEN" : "LISTEN_FAILED";
      reject(new RpcServerError(code, text, { cause, details: { ...wanted } }));
    };
    server.once("error", onError);
    server.listen(wanted.port, wanted.host, () => {
      server.off("error", onError);
      outliveUntaken(server, name, log);
      resolve();
    });
  });
  const bound = server.address();
  if (bound === null || typeof bound === "string") {
    throw new RpcServerError("LISTEN_FAILED", `${name} is not bound to a TCP port`);
  }
  return { host: bound.address, port: bound.port };
}

/** Stops accepting, lets open requests finish for a moment, then closes what is left. */
export function stopServer(server: Server): Promise<void> {
  return endServer(server, STOP_GRACE_MS);
}

/** Why a body is not read. */
export type BodyRefusal = "too large" | "no room";

/**
 * Collects a request's body and calls `done` once: with the body, or with why it is refused:
 * "too large" beyond `limitOf(first chunk)` bytes, "no room" where all clients together have sent
 * too much. Nothing is called when the client goes away. The body counts until its answer is made.
 */
export function readBody(
  { request, response, memory }: Exchanged,
  limitOf: (firstChunk: Buffer) => number,
  done: (body: Buffer | BodyRefusal) => void,
): void {
  let body = new CollectedBytes();
  let limitBytes = 0;
  let ended = false;
  const refuse = (refusal: BodyRefusal) => {
    ended = true;
    body = new CollectedBytes();
    holding?.release();
    discardRest(request, response);
    done(refusal);
  };
  let holding: Holding | undefined;
  request.on("data", (chunk: Buffer) => {
    if (ended) return;
    if (body.sizeBytes === 0) limitBytes = limitOf(chunk);
    body.add(chunk);
    if (body.sizeBytes > limitBytes) {
      refuse("too large");
      return;
    }
    if (body.sizeBytes <= COUNTED_BYTES) return;
    holding ??= holdUntilAnswered(memory.unread, response, () => refuse("no room"));
    holding.update(body.sizeBytes);
  });
  request.on("end", () => {
    if (ended) return;
    holding?.pin();
    const whole = body.whole();
    // These listeners stay as long as the request: whoever has the body now lets go of it.
    body = new CollectedBytes();
    done(whole);
  });
}

/** One request, its answer, and what all of them may keep in memory. */
export interface Exchanged {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly memory: ClientMemory;
}

/** Sends JSON that lies in pieces; bytes among them are not copied. */
export function sendPieces(
  { response, memory }: Pick<Exchanged, "response" | "memory">,
  status: number,
  pieces: readonly (string | Buffer)[],
  headers: Readonly<Record<string, string>>,
): void {
  let sizeBytes = 0;
  for (const piece of pieces) sizeBytes += Buffer.byteLength(piece);
  response.writeHead(status, {
    "Content-Type": "application/json",
    "Content-Length": sizeBytes,
    ...headers,
  });
  const [only] = pieces;
  if (pieces.length === 1) {
    response.end(only);
  } else {
    // Corked, the pieces leave in one write.
    response.cork();
    for (const piece of pieces) response.write(piece);
    response.end();
  }
  if (sizeBytes > COUNTED_BYTES) {
    holdUntilClosed(memory.unsent, response, () => response.destroy()).update(sizeBytes);
  }
}

/**
 * Path and query of what is asked for. Slashes behind each other are one where the request only reads, as in
 * Go's routers, which redirect there: base URLs end with a slash, and paths begin with one.
 */
export function targetOf({ method, url = "/" }: Pick<IncomingMessage, "method" | "url">): {
  readonly path: string;
  readonly query: string;
} {
  const at = url.indexOf("?");
  const [path, query] = at < 0 ? [url, ""] : [url.slice(0, at), url.slice(at + 1)];
  const isRead = method === "GET" || method === "HEAD";
  return { path: isRead ? path.replaceAll(/\/{2,}/g, "/") : path, query };
}

/** Sends a short text answer. */
export function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    "Content-Type": "text/plain; charset=utf-8",
    "Content-Length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}
