/** What the node's plain `node:http` servers share: listening, body reading, ending. */
import { formatListenAddress, type ListenAddress } from "../../runtime/config/config-values.js";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { AppError, errorCode, errorMessage } from "../../chain/errors.js";

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

/** Time that open requests get to finish when a server stops. */
const STOP_GRACE_MS = 2_000;

/** Time for a client to send its headers and body; slower ones are cut off. */
const REQUEST_TIMEOUT_MS = 30_000;

/** Longer than the 60 s of common balancers, so that they close first. */
const KEEP_ALIVE_MS = 65_000;

/**
 * Binds the server.
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function listen(
  server: Server,
  name: string,
  wanted: ListenAddress,
): Promise<ListenAddress> {
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
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
export async function stopServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS);
  await closed;
  clearTimeout(timer);
}

/**
 * Collects a request's body and calls `done` once: with the body, or with undefined when it is
 * larger than `limitOf(first chunk)` bytes. Nothing is called when the client goes away.
 */
export function readBody(
  request: IncomingMessage,
  limitOf: (firstChunk: Buffer) => number,
  done: (body: Buffer | undefined) => void,
): void {
  let chunks: Buffer[] = [];
  let sizeBytes = 0;
  let limitBytes = 0;
  let ended = false;
  request.on("data", (chunk: Buffer) => {
    if (ended) return;
    if (chunks.length === 0) limitBytes = limitOf(chunk);
    sizeBytes += chunk.length;
    if (sizeBytes > limitBytes) {
      ended = true;
      chunks = [];
      done(undefined);
      return;
    }
    chunks.push(chunk);
  });
  request.on("end", () => {
    if (ended) return;
    const [only] = chunks;
    done(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, sizeBytes));
  });
}

/** Sends JSON that lies in pieces; bytes among them are not copied. */
export function sendPieces(
  response: ServerResponse,
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
    return;
  }
  // Corked, the pieces leave in one write.
  response.cork();
  for (const piece of pieces) response.write(piece);
  response.end();
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
