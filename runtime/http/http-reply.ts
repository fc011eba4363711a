/** Sending JSON, and the signal that tells that nobody waits for it any more. */
import { type ServerResponse, STATUS_CODES } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Duplex } from "node:stream";
import { LazySignal } from "../process/lazy-signal.js";
import { clientOf } from "../turns/client-address.js";
import { isHeadOnly } from "./readers.js";

/** A handler's answer: a JSON value, checked against the API file, finished bytes, or a stream. */
export interface HttpReply {
  /** Default 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON value; ignored when `bytes` is given. */
  readonly body?: unknown;
  /** Serialised JSON, sent as it is and without response validation. */
  readonly bytes?: Uint8Array;
  /**
   * Pieces that are sent as they come, at the client's pace; `headers` name their type. It holds nothing
   * before its first piece is asked for: where the client is gone, or wants the head alone, none is.
   */
  readonly stream?: AsyncIterable<Uint8Array>;
}

const JSON_TYPE = "application/json; charset=utf-8";

/** Sends a value as JSON. Text goes out in one piece with the head, bytes would not. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": response.getHeader("content-type") ?? JSON_TYPE,
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}

/** Sends serialised JSON as it is. */
export function sendBytes(response: ServerResponse, status: number, bytes: Uint8Array): void {
  const type = response.getHeader("content-type") ?? JSON_TYPE;
  response.writeHead(status, { "content-type": type, "content-length": bytes.length });
  response.end(bytes);
}

/** Fires when the client goes away before the reply is finished. */
export function leavingOf(response: ServerResponse): LazySignal {
  const { socket } = response;
  const leaving = new LazySignal(() => ({ client: clientOf(socket?.remoteAddress) }));
  response.once("close", () => {
    if (response.writableFinished) return;
    leaving.abort(new DOMException("the client went away", "AbortError"));
  });
  return leaving;
}

/** Time to take the answer; closed at once, with bytes that nobody reads, a connection loses it. */
const LAST_ANSWER_MS = 2_000;

/** Answers on a connection whose request could not even be read, and closes it. */
export function endSocket(socket: Duplex, status: number, body: unknown, type = JSON_TYPE): void {
  const text = JSON.stringify(body);
  sendLast(
    socket,
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nContent-Type: ${type}\r\n` +
      `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
  );
}

/**
 * Sends the last bytes of a connection that no server looks after any more, and closes it; also where the
 * client leaves its side open: it would count among the connections that a server has, for ever.
 */
export function sendLast(socket: Duplex, bytes: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(bytes);
  const timer = setTimeout(() => socket.destroy(), LAST_ANSWER_MS).unref();
  socket.once("close", () => clearTimeout(timer));
}

/**
 * Sends a handler's reply; `sendBody` is asked where it is a JSON value. Of a stream it resolves when all of
 * it is sent, or the client is gone.
 * @throws what a stream throws to a client that is still there: the connection is gone by then
 */
export async function sendReply(
  reply: HttpReply,
  response: ServerResponse,
  sendBody: (status: number) => void,
): Promise<void> {
  for (const [name, value] of Object.entries(reply.headers ?? {})) {
    response.setHeader(name, value);
  }
  const status = reply.status ?? 200;
  if (reply.stream !== undefined && isHeadOnly(response)) {
    response.writeHead(status).end();
  } else if (reply.stream !== undefined) {
    response.writeHead(status);
    // Without a byte the client would not see the head.
    response.flushHeaders();
    await sendStream(reply.stream, response);
  } else if (reply.bytes !== undefined) {
    sendBytes(response, status, reply.bytes);
  } else if (reply.body === undefined) {
    response.writeHead(status).end();
  } else {
    sendBody(status);
  }
}

async function sendStream(
  stream: AsyncIterable<Uint8Array>,
  response: ServerResponse,
): Promise<void> {
  const pieces = Readable.from(stream);
  let isFault = false;
  // Before the pipeline, which ends the connection in good order: to a client of HTTP/1.0 that is the end of
  // the answer, and what broke off would be whole.
  pieces.once("error", () => {
    isFault = !response.req.socket.destroyed;
    if (isFault) response.socket?.resetAndDestroy();
  });
  try {
    await pipeline(pieces, response);
  } catch (error) {
    response.destroy();
    // A client that goes away ends the stream; there is nobody left to tell.
    if (isFault) throw error;
  }
}
