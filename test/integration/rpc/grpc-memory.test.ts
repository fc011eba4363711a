/**
 * Clients of gRPC that send much and never end, ask for much and take nothing, or only connect: what
 * the node keeps for them is bounded, and those who behave are served.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import * as http2 from "node:http2";
import * as net from "node:net";
import { gzipSync } from "node:zlib";
import * as grpc from "@grpc/grpc-js";
import { encodeMessage } from "../../../chain/protobuf/codec.js";
import { type ClientMemory, createClientMemory } from "../../../node/rpc/client-memory.js";
import { startGrpcServer } from "../../../node/rpc/grpc/server.js";
import type { RpcServer } from "../../../node/rpc/http-listener.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { type Clock, systemClock } from "../../../runtime/process/clock.js";
import { until } from "../../helpers/until.js";
import { chain, closeInterfaces, openInterfaces } from "./interfaces.js";

const LIMITS = { unreadBytes: 1_000_000, unsentBytes: 300_000 };
const MAX_CONNECTIONS = 8;
const WAIT = { timeoutMs: 30_000 };
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const LATEST = "/cosmos.base.tendermint.v1beta1.Service/GetLatestBlock";

let memory: ClientMemory;
let server: RpcServer;
let sessions: http2.ClientHttp2Session[] = [];

beforeAll(openInterfaces);
afterAll(closeInterfaces);

beforeEach(async () => {
  memory = createClientMemory(systemClock, LIMITS);
  server = await start();
});

function start(limits: { readonly requestsPerSecond?: number; readonly clock?: Clock } = {}) {
  return startGrpcServer({
    listen: { host: "127.0.0.1", port: 0 },
    queries: chain.queries,
    maxConnections: MAX_CONNECTIONS,
    requestsPerSecond: 0,
    memory,
    clock: systemClock,
    log: createLogger({ component: "test", level: "silent" }),
    ...limits,
  });
}

afterEach(async () => {
  for (const session of sessions) session.destroy();
  sessions = [];
  await server.stop();
});

/** A connection, and calls over it. */
function connect(settings: http2.Settings = {}) {
  const session = http2.connect(`http://127.0.0.1:${server.address.port}`, { settings });
  session.on("error", () => undefined);
  sessions.push(session);
  return (path: string, more: http2.OutgoingHttpHeaders = {}) => {
    const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc" };
    const stream = session.request({ ...headers, te: "trailers", ...more });
    stream.on("error", () => undefined);
    return stream;
  };
}

it("one client of another machine has half of the connections", async () => {
  const listening = jest.spyOn(net.Server.prototype, "listen");
  const other = await start();
  const [taking] = listening.mock.contexts as net.Server[];
  listening.mockRestore();
  const sockets = Array.from({ length: MAX_CONNECTIONS }, () =>
    Object.defineProperty(new net.Socket(), "remoteAddress", { value: "203.0.113.1" }),
  );
  for (const socket of sockets) taking?.emit("connection", socket);
  const refused = sockets.filter(({ destroyed }) => destroyed).length;
  for (const socket of sockets) socket.destroy();
  await other.stop();
  expect(refused).toBe(MAX_CONNECTIONS / 2);
});

/** A message in its frame, as long as it says or as long as it is. */
function framed(message: Uint8Array, sizeBytes = message.length): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(sizeBytes, 1);
  return Buffer.concat([head, message]);
}

/** Someone who behaves. */
async function latestBlock(): Promise<Buffer> {
  const address = `127.0.0.1:${server.address.port}`;
  const client = new grpc.Client(address, grpc.credentials.createInsecure());
  const same = (bytes: Buffer) => bytes;
  try {
    return await new Promise((resolve, reject) => {
      client.makeUnaryRequest(LATEST, same, same, Buffer.alloc(0), (error, answer) => {
        if (error === null && answer !== undefined) resolve(answer);
        else reject(error);
      });
    });
  } finally {
    client.close();
  }
}

it("requests that never end are let go when they are too much together", async () => {
  const open = connect();
  const streams = Array.from({ length: 20 }, () => open(LATEST));
  // Nine tenths of a message each, which is below the largest there may be.
  for (const stream of streams) stream.write(framed(Buffer.alloc(180_000), 200_000));
  await until(() => memory.unread.letGoCount >= 15, WAIT);
  expect(memory.unread.totalBytes).toBeGreaterThan(0);
  expect(memory.unread.totalBytes).toBeLessThanOrEqual(LIMITS.unreadBytes);
  await until(() => streams.filter(({ closed }) => closed).length >= 15, WAIT);
  expect((await latestBlock()).length).toBeGreaterThan(0);
});

it("whole requests that are not ended keep nobody out for whom there would be room", async () => {
  const open = connect();
  const streams = Array.from({ length: 6 }, () => open(LATEST));
  for (const stream of streams) stream.write(framed(Buffer.alloc(160_000)));
  await until(() => memory.unread.totalBytes > 800_000, WAIT);
  const late = connect()(LATEST);
  const outcome = Promise.race([
    once(late, "response").then(() => "answered"),
    once(late, "close").then(() => "let go"),
  ]);
  late.resume().end(framed(Buffer.alloc(100_000)));
  expect(await outcome).toBe("answered");
  expect(memory.unread.totalBytes).toBeLessThanOrEqual(LIMITS.unreadBytes);
});

it("packed requests are refused before anything of them is read", async () => {
  const open = connect();
  const refusal = { "grpc-status": "12", "grpc-accept-encoding": "identity" };
  for (const packed of [undefined, framed(gzipSync(Buffer.alloc(4_000_000, 0xff)))]) {
    const stream = open(LATEST, { "grpc-encoding": "gzip" });
    const refused = once(stream.resume(), "response");
    packed?.writeUInt8(1, 0);
    if (packed !== undefined) stream.end(packed);
    expect((await refused)[0]).toMatchObject(refusal);
  }
  const plain = open(LATEST, { "grpc-encoding": "identity" });
  const answered = once(plain.resume(), "response");
  plain.end(framed(Buffer.alloc(0)));
  expect((await answered)[0]).toMatchObject({ "grpc-accept-encoding": "identity" });
  await until(() => plain.closed && memory.unread.totalBytes === 0, WAIT);
});

/** A frame of HTTP/2 on stream 1, or on none. */
function frame(type: number, flags: number, payload: Uint8Array, stream = 1): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A header field as HPACK writes it without any table. */
function field(name: string, value: string): Buffer {
  const text = (of: string) => Buffer.concat([Buffer.from([of.length]), Buffer.from(of)]);
  return Buffer.concat([Buffer.from([0]), text(name), text(value)]);
}

it("requests in pieces of a byte are let go by what they take, not by what they hold", async () => {
  const [SETTINGS, HEADERS, DATA] = [4, 1, 0] as const;
  const socket = net.connect(server.address.port, "127.0.0.1");
  let isGone = false;
  socket.on("error", () => undefined);
  // RST_STREAM is all that a client is sent of a call that is let go.
  socket.on("data", (bytes: Buffer) => (isGone ||= bytes.includes(Buffer.from([0, 0, 4, 3, 0]))));
  try {
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write(frame(SETTINGS, 0, Buffer.alloc(0), 0));
    const named = [field(":path", LATEST), field(":authority", "x"), field("te", "trailers")];
    const type = field("content-type", "application/grpc");
    // ":method: POST" and ":scheme: http" stand in HPACK's own table.
    const headers = Buffer.concat([Buffer.from([0x83, 0x86]), ...named, type]);
    socket.write(frame(HEADERS, 4, headers));
    socket.write(frame(DATA, 0, framed(Buffer.alloc(0), 200_000)));
    const piece = frame(DATA, 0, Buffer.alloc(1));
    const pieces = Buffer.concat(Array.from({ length: 10_000 }, () => piece));
    socket.write(pieces);
    await until(() => memory.unread.letGoCount === 1 && isGone, WAIT);
    expect(memory.unread.totalBytes).toBe(0);
    expect((await latestBlock()).length).toBeGreaterThan(0);
  } finally {
    socket.destroy();
  }
});

it("answers that nobody takes are let go when they are too much together", async () => {
  const open = connect({ initialWindowSize: 0 });
  const input = chain.queries.types.message("grpc.reflection.v1.ServerReflectionRequest");
  const question = encodeMessage(input, { file_containing_symbol: "cosmos.gov.v1.Query" });
  const streams = Array.from({ length: 40 }, () => open(REFLECTION));
  for (const stream of streams) stream.write(framed(question));
  await until(() => memory.unsent.letGoCount > 10, WAIT);
  expect(memory.unsent.totalBytes).toBeLessThanOrEqual(LIMITS.unsentBytes);
  expect((await latestBlock()).length).toBeGreaterThan(0);
});

it("no more answers are made in one call than are taken", async () => {
  const made = jest.spyOn(chain.queries.types, "fileOfSymbol");
  const input = chain.queries.types.message("grpc.reflection.v1.ServerReflectionRequest");
  const question = encodeMessage(input, { file_containing_symbol: "cosmos.gov.v1.Query" });
  const stream = connect({ initialWindowSize: 0 })(REFLECTION);
  for (let count = 0; count < 1_000; count++) stream.write(framed(question));
  await until(() => made.mock.calls.length > 0, WAIT);
  for (let count = 0; count < 20; count++) await latestBlock();
  expect(made.mock.calls.length).toBeLessThan(10);
  made.mockRestore();
});

it("each question of reflection is one of the requests that an address may make", async () => {
  await server.stop();
  const clock = { ...systemClock, monotonicMs: () => 0 };
  // Two seconds' worth at once.
  server = await start({ requestsPerSecond: 3, clock });
  const made = jest.spyOn(chain.queries.types, "fileOfSymbol");
  const input = chain.queries.types.message("grpc.reflection.v1.ServerReflectionRequest");
  const question = encodeMessage(input, { file_containing_symbol: "cosmos.bank.v1beta1.Query" });
  const open = connect();
  const ends: unknown[] = [];
  for (let asked = 0; asked < 2; asked++) {
    const stream = open(REFLECTION);
    stream.on("trailers", (trailers) => ends.push(trailers["grpc-status"])).resume();
    for (let count = 0; count < 20; count++) stream.write(framed(question));
  }
  await until(() => ends.length === 2, WAIT);
  expect(ends.map(Number)).toEqual([8, 8]);
  expect(made).toHaveBeenCalledTimes(6);
  made.mockRestore();
  await expect(latestBlock()).rejects.toMatchObject({ code: grpc.status.RESOURCE_EXHAUSTED });
});

it("nothing is counted of calls that are over, or of answers that were taken", async () => {
  const open = connect();
  const input = chain.queries.types.message("grpc.reflection.v1.ServerReflectionRequest");
  const question = encodeMessage(input, { file_containing_symbol: "cosmos.gov.v1.Query" });
  const stream = open(REFLECTION);
  let sizeBytes = 0;
  stream.on("data", (chunk: Buffer) => (sizeBytes += chunk.length));
  stream.write(framed(question));
  await until(() => sizeBytes > 20_000, WAIT);
  const large = open(LATEST);
  large.resume();
  // A field that no block has: it is refused once it is whole.
  large.end(framed(Buffer.alloc(500_000, 0xff)));
  await until(() => large.closed, WAIT);
  await until(() => memory.unread.totalBytes + memory.unsent.totalBytes === 0, WAIT);
  expect([memory.unread.letGoCount, memory.unsent.letGoCount]).toEqual([0, 0]);
});

it("nothing is counted of questions that are answered, though their stream stays open", async () => {
  const open = connect();
  const input = chain.queries.types.message("grpc.reflection.v1.ServerReflectionRequest");
  // Nine tenths of what there is room for.
  const question = encodeMessage(input, { host: "x".repeat(30_000), file_by_filename: "none" });
  const stream = open(REFLECTION);
  let sizeBytes = 0;
  stream.on("data", (chunk: Buffer) => (sizeBytes += chunk.length));
  for (let count = 0; count < 30; count++) stream.write(framed(question));
  // Each answer repeats the host, and the question with it.
  await until(() => sizeBytes > 60 * 30_000, WAIT);
  expect(memory.unread.totalBytes).toBe(0);
  const other = open(LATEST);
  const ended = once(other.resume(), "close");
  other.end(framed(Buffer.alloc(500_000, 0xff)));
  await ended;
  expect([memory.unread.letGoCount, stream.closed]).toEqual([0, false]);
});

it("a client that has not said a word does not keep the server from its end", async () => {
  const silent = net.connect(server.address.port, server.address.host);
  silent.on("error", () => undefined).resume();
  await once(silent, "connect");
  const closed = once(silent, "close");
  await server.stop();
  await closed;
});

it("connections beyond the bound are refused, and there is room when others are gone", async () => {
  const sockets = Array.from({ length: MAX_CONNECTIONS + 3 }, () => {
    const socket = net.connect(server.address.port, server.address.host);
    return socket.on("error", () => undefined).resume();
  });
  const open = () => sockets.filter(({ destroyed }) => !destroyed);
  try {
    await until(() => open().length <= MAX_CONNECTIONS, WAIT);
    expect(open()).toHaveLength(MAX_CONNECTIONS);
    for (const socket of open().slice(0, 3)) socket.destroy();
    await until(async () => (await latestBlock().catch(() => "")).length > 0, WAIT);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});
