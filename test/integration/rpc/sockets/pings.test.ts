/**
 * Clients that are gone are ended; those that the node does not read, because they ask for much, are not.
 * Where the server ends, or has refused them, none of them can keep it from that; what runs is answered.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect as connectTcp, type Socket as Client } from "node:net";
import { type ClientOptions, WebSocket } from "ws";
import type { CallResult } from "../../../../node/execution/calls/call-port.js";
import { createClientMemory } from "../../../../node/rpc/client-memory.js";
import { LargeBatches } from "../../../../node/rpc/comet/json-rpc.js";
import { route } from "../../../../node/rpc/comet/route.js";
import { CometConnection } from "../../../../node/rpc/comet/socket-connection.js";
import { SocketConnection } from "../../../../node/rpc/evm/sockets/socket-connection.js";
import { type WebSocketOptions, WebSockets } from "../../../../node/rpc/web-sockets.js";
import { endServer } from "../../../../runtime/http/connections/ending.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { OWN_WORK } from "../../../../runtime/process/work-owner.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { until } from "../../../helpers/until.js";
import { createTestNode } from "../../../unit/rpc/evm/fixture.js";

const PING_INTERVAL_MS = 20_000;

/** What a connection runs at once; it is not read above that. */
const IN_FLIGHT = 64;
const WAIT = { timeoutMs: 30_000 };
const CALL = { to: `0x${"aa".repeat(20)}` };

const memory = createClientMemory(systemClock);
const node = createTestNode();
let answer: (result: CallResult) => void;
let server: Server;
let sockets: WebSockets;
/** What the next clients are clients of: the node's JSON-RPC, where no test says otherwise. */
let served: WebSocketOptions["connect"];
const clients: WebSocket[] = [];

beforeAll(() => {
  // Only the interval of the pings is a fake: everything else waits for real sockets.
  jest.useFakeTimers({
    doNotFake: [
      "Date",
      "hrtime",
      "nextTick",
      "performance",
      "queueMicrotask",
      "setImmediate",
      "clearImmediate",
      "setTimeout",
      "clearTimeout",
    ],
  });
});

afterAll(() => {
  jest.useRealTimers();
});

beforeEach(async () => {
  const answered = new Promise<CallResult>((resolve) => (answer = resolve));
  node.calls.call = () => answered;
  served = (socket) => new SocketConnection(socket, node.api, memory);
  server = createServer();
  sockets = new WebSockets(server, {
    maxMessageBytes: 1_000_000,
    pingIntervalMs: PING_INTERVAL_MS,
    allowedOrigins: [],
    refusal: () => undefined,
    connect: (socket, request) => served(socket, request),
    memory,
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.terminate();
  await sockets.close();
  await new Promise((resolve) => server.close(resolve));
});

function port(): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

async function connect(options: ClientOptions = {}) {
  const client = new WebSocket(`ws://127.0.0.1:${port()}`, options);
  clients.push(client);
  const seen = { pings: 0, answers: 0 };
  client.on("ping", () => (seen.pings += 1));
  client.on("message", () => (seen.answers += 1));
  await once(client, "open");
  return { client, seen };
}

type Connected = Awaited<ReturnType<typeof connect>>;

/** Lets the time between two pings pass; resolves when the client has had the ping, or is ended. */
async function nextPing({ client, seen }: Connected): Promise<void> {
  const { pings } = seen;
  jest.advanceTimersByTime(PING_INTERVAL_MS);
  await until(() => seen.pings > pings || client.readyState === WebSocket.CLOSED, WAIT);
}

function ask(client: WebSocket, method: string, params: readonly unknown[]): void {
  client.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
}

it("ends a client that does not answer", async () => {
  const all = await connect({ autoPong: false });
  await nextPing(all);
  expect(all.client.readyState).toBe(WebSocket.OPEN);
  await nextPing(all);
  expect(all.client.readyState).toBe(WebSocket.CLOSED);
  await until(() => sockets.size === 0, WAIT);
});

it("keeps a client whose requests it does not read on with", async () => {
  const all = await connect();
  const { client, seen } = all;
  const asked = jest.spyOn(node.calls, "call");
  for (let count = 0; count < 2 * IN_FLIGHT; count++) ask(client, "eth_call", [CALL, "latest"]);
  await until(() => asked.mock.calls.length >= IN_FLIGHT, WAIT);
  for (let count = 0; count < 6; count++) await nextPing(all);
  expect([client.readyState, seen.answers]).toEqual([WebSocket.OPEN, 0]);
  answer({ outcome: "success", returnData: new Uint8Array(0), gasUsed: 21_000n });
  await until(() => seen.answers === 2 * IN_FLIGHT, WAIT);
  for (let count = 1; count <= 4; count++) {
    await nextPing(all);
    // The pong is back before the next answer is.
    ask(client, "eth_chainId", []);
    await until(() => seen.answers === 2 * IN_FLIGHT + count, WAIT);
  }
  expect([client.readyState, seen.pings]).toEqual([WebSocket.OPEN, 10]);
});

it("keeps a client that asks, whether it answers pings or not", async () => {
  const all = await connect({ autoPong: false });
  const { client, seen } = all;
  for (let count = 1; count <= 6; count++) {
    await nextPing(all);
    ask(client, "eth_chainId", []);
    await until(() => seen.answers === count || client.readyState === WebSocket.CLOSED, WAIT);
  }
  expect([client.readyState, seen.pings]).toEqual([WebSocket.OPEN, 6]);
});

/** Asks for what is refused, and leaves its side of the connection open. */
async function refusedClient(): Promise<Client> {
  const client = connectTcp({ port: port(), host: "127.0.0.1", allowHalfOpen: true });
  let text = "";
  client.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
  client.write(
    "GET / HTTP/1.1\r\nHost: here\r\nOrigin: https://other.example\r\n" +
      "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
  );
  await once(client, "end");
  expect(text).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
  return client;
}

/** Connections that the server has. */
const held = () =>
  new Promise<number>((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });

it("keeps no connection of a client that it has refused, and that leaves it open", async () => {
  const client = await refusedClient();
  try {
    await until(async () => (await held()) === 0, WAIT);
  } finally {
    client.destroy();
  }
});

it("waits at its end for no client that it has refused longer than for the others", async () => {
  const refused: Client[] = [];
  const never = setTimeout(() => undefined, 0);
  // What else would end them, in its own time.
  const timers = jest.spyOn(globalThis, "setTimeout").mockReturnValue(never);
  try {
    refused.push(await refusedClient());
    timers.mockRestore();
    expect(await held()).toBe(1);
    await sockets.close();
    expect(await held()).toBe(0);
    // And who comes still later is not waited for at all.
    jest.spyOn(globalThis, "setTimeout").mockReturnValue(never);
    refused.push(await refusedClient());
    jest.restoreAllMocks();
    await until(async () => (await held()) === 0, WAIT);
  } finally {
    jest.restoreAllMocks();
    for (const client of refused) client.destroy();
  }
});

it("ends though a client comes again as soon as it is told to", async () => {
  // Silent towards the end, so that there is time for the other one to come again.
  const { client: silent } = await connect({ autoPong: false });
  silent.pause();
  const { client } = await connect();
  const url = `ws://127.0.0.1:${port()}`;
  const again = new Promise<string>((resolve) => {
    client.once("close", () => {
      const next = new WebSocket(url);
      clients.push(next);
      next.once("open", () => resolve("open"));
      next.once("error", ({ message }) => resolve(message));
    });
  });
  await sockets.close();
  const ended = endServer(server, 100).then(() => "ended");
  const late = new Promise((resolve) => {
    setTimeout(() => resolve("not ended"), 240_000).unref();
  });
  expect(await Promise.race([ended, late])).toBe("ended");
  expect(await again).toBe("Unexpected server response: 503");
});

const SUCCESS: CallResult = {
  outcome: "success",
  returnData: new Uint8Array(0),
  gasUsed: 21_000n,
};

/** Makes the next clients those of a consensus RPC whose one route is answered like a call. */
function serveComet(): void {
  const log = createLogger({ component: "test", level: "silent" });
  const run = () => node.calls.call({} as never, {} as never, {});
  const routes = new Map([route("eth_call", [], async () => ({ gas: (await run()).outcome }))]);
  const large = new LargeBatches();
  served = (socket) => new CometConnection(socket, { routes, large, log, memory, owner: OWN_WORK });
}

const KINDS: readonly (readonly [string, readonly unknown[], () => void])[] = [
  ["the EVM's JSON-RPC", [CALL, "latest"], () => undefined],
  ["the consensus RPC", [], serveComet],
];

it.each(KINDS)(
  "answers what runs as it ends, and begins nothing more: %s",
  async (_name, params, serve) => {
    serve();
    const { client, seen } = await connect();
    const asked = jest.spyOn(node.calls, "call");
    ask(client, "eth_call", params);
    await until(() => asked.mock.calls.length === 1, WAIT);
    const closed = once(client, "close");
    const ended = sockets.close();
    ask(client, "eth_call", params);
    // Behind what was asked: that is read by then.
    client.ping();
    await Promise.race([once(client, "pong"), closed]);
    answer(SUCCESS);
    expect((await closed)[0]).toBe(1012);
    await ended;
    expect([seen.answers, asked.mock.calls.length]).toEqual([1, 1]);
  },
);

it.each(KINDS)("carries out nothing behind its close frame: %s", async (_name, params, serve) => {
  serve();
  const { client } = await connect();
  const asked = jest.spyOn(node.calls, "call");
  const closed = once(client, "close");
  const ended = sockets.close();
  // The client has not read yet that the server ends.
  ask(client, "eth_call", params);
  await ended;
  expect((await closed)[0]).toBe(1012);
  expect(asked).not.toHaveBeenCalled();
});

it("waits at its end for no answer longer than for a client", async () => {
  const { client } = await connect();
  const asked = jest.spyOn(node.calls, "call");
  ask(client, "eth_call", [CALL, "latest"]);
  await until(() => asked.mock.calls.length === 1, WAIT);
  const closed = once(client, "close");
  await sockets.close();
  expect((await closed)[0]).toBe(1012);
  answer(SUCCESS);
});
