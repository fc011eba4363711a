/**
 * Bodies and answers that come in pieces of a byte each: whoever reads them keeps the bytes, and not the
 * pieces, which take some 300 bytes each.
 */
import { afterEach, expect, it } from "@jest/globals";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import {
  type ClientRequest,
  createServer as createHttpServer,
  type IncomingMessage,
} from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { createClientMemory } from "../../../node/rpc/client-memory.js";
import { startEvmHttpServer } from "../../../node/rpc/evm/http-server.js";
import { createHttpPoster } from "../../../rpc-client/http-post.js";
import { readBody } from "../../../runtime/http/http-body.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { KeptPieces } from "../../helpers/effort/kept-pieces.js";
import { until } from "../../helpers/until.js";
import { createTestNode } from "../../unit/rpc/evm/fixture.js";

const PIECES = 20_000;
/** The first, and what was read last. */
const MOST_KEPT = 100;
const WAIT = { timeoutMs: 60_000 };
const HOST = "127.0.0.1";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** Notes the pieces of the next message that comes. */
function watchPieces(channel: string, onMessage: (told: unknown, note: Note) => void) {
  const pieces = new KeptPieces();
  const note = (message: IncomingMessage) => {
    message.on("data", (piece: Buffer) => pieces.note(piece));
  };
  const listener = (told: unknown) => onMessage(told, note);
  subscribe(channel, listener);
  cleanups.push(() => unsubscribe(channel, listener));
  return pieces;
}

type Note = (message: IncomingMessage) => void;

function watchRequest(): KeptPieces {
  return watchPieces("http.server.request.start", (told, note) => {
    note((told as { readonly request: IncomingMessage }).request);
  });
}

function watchResponse(): KeptPieces {
  return watchPieces("http.client.request.start", (told, note) => {
    (told as { readonly request: ClientRequest }).request.once("response", note);
  });
}

/** Writes pieces of one byte each, of a message that has no end yet. */
function writePieces(socket: Socket): void {
  socket.write("1\r\n \r\n".repeat(PIECES));
}

async function sendPieces(port: number): Promise<Socket> {
  const socket = connect(port, HOST);
  cleanups.push(() => socket.destroy());
  await once(socket, "connect");
  socket.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  writePieces(socket);
  return socket;
}

function endPieces(socket: Socket, text: string): void {
  socket.write(`${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`);
}

async function listening(server: Server): Promise<number> {
  server.listen(0, HOST);
  await once(server, "listening");
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

it("the node keeps no pieces of a request", async () => {
  const memory = createClientMemory(systemClock);
  const listen = { host: HOST, port: 0 };
  const node = createTestNode();
  const server = await startEvmHttpServer(node.api, { listen, allowedOrigins: [], memory });
  cleanups.push(() => server.stop());
  const pieces = watchRequest();
  const socket = await sendPieces(server.address.port);
  await until(() => pieces.count >= PIECES, WAIT);
  expect(await pieces.kept()).toBeLessThan(MOST_KEPT);
  endPieces(socket, JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_chainId" }));
  const [answer] = await once(socket, "data");
  expect(String(answer)).toContain('"result":"0x1b1c"');
});

it("the other servers of the kit keep no pieces of a request", async () => {
  let taken: Buffer | undefined;
  const take = async (request: IncomingMessage) => {
    taken = await readBody(request, 1_000_000);
  };
  const server = createHttpServer((request, response) => {
    void take(request).finally(() => response.end("ok"));
  });
  const port = await listening(server);
  const pieces = watchRequest();
  const socket = await sendPieces(port);
  await until(() => pieces.count >= PIECES, WAIT);
  expect(await pieces.kept()).toBeLessThan(MOST_KEPT);
  endPieces(socket, "end");
  await once(socket, "data");
  expect(taken?.toString()).toBe(`${" ".repeat(PIECES)}end`);
});

it("clients of the kit keep no pieces of a node's answer", async () => {
  let answering: Socket | undefined;
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      answering = socket;
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      writePieces(socket);
    });
  });
  const url = `http://${HOST}:${await listening(server)}`;
  const client = createHttpPoster({ url, timeoutMs: 60_000, maxResponseBytes: 1_000_000 });
  cleanups.push(() => client.close());
  const pieces = watchResponse();
  const reply = client.post("{}", { signal: new AbortController().signal });
  await until(() => pieces.count >= PIECES, WAIT);
  expect(await pieces.kept()).toBeLessThan(MOST_KEPT);
  if (answering !== undefined) endPieces(answering, "end");
  expect((await reply).body.toString()).toBe(`${" ".repeat(PIECES)}end`);
});
