/**
 * Clients that ask for much and take nothing, or send much and never end: what the node keeps for
 * them is bounded over all connections, counted in bytes, and those who behave are served.
 */
import { afterEach, describe, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { WebSocket } from "ws";
import { type ClientMemory, createClientMemory } from "../../../node/rpc/client-memory.js";
import { QueryRegistry } from "../../../node/rpc/cosmos/registry.js";
import { startEvmHttpServer } from "../../../node/rpc/evm/http-server.js";
import { startEvmSocketServer } from "../../../node/rpc/evm/sockets/socket-server.js";
import { startMetricsServer } from "../../../node/rpc/metrics-server.js";
import { startRestServer } from "../../../node/rpc/rest/server.js";
import { loadDescriptors } from "../../../runtime/files/descriptor-set.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { createGate } from "../../helpers/gate.js";
import { until } from "../../helpers/until.js";
import { TestClock } from "../../unit/p2p/clock.js";
import { ALICE, BOB, createTestNode, signLegacy } from "../../unit/rpc/evm/fixture.js";

/** Bounds of the test: a few of the answers below at once. */
const UNSENT_BYTES = 24_000_000;
const UNREAD_BYTES = 4_000_000;

const CROWD = 120;
const LISTEN = { host: "127.0.0.1", port: 0 };
const WAIT = { timeoutMs: 60_000 };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function startNode(unreadBytes = UNREAD_BYTES) {
  const clock = new TestClock();
  const limits = { unsentBytes: UNSENT_BYTES, unreadBytes };
  const memory = createClientMemory(clock, limits);
  const node = createTestNode();
  const raw = await signLegacy(ALICE, { nonce: 0, data: `0x${"ab".repeat(100_000)}` });
  node.chain.add([{ raw }]);
  const options = { listen: LISTEN, allowedOrigins: [], memory };
  const http = await startEvmHttpServer(node.api, options);
  const sockets = await startEvmSocketServer(node.api, options);
  cleanups.push(() => Promise.all([http.stop(), sockets.stop()]));
  return { clock, memory, node, httpPort: http.address.port, socketPort: sockets.address.port };
}

/** A batch whose answer takes some five megabytes: blocks of 200 KB. */
const LARGE_BATCH = JSON.stringify(
  Array.from({ length: 25 }, (_, id) => {
    return { jsonrpc: "2.0", id, method: "eth_getBlockByNumber", params: ["0x1", true] };
  }),
);
const SMALL_CALL = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_chainId" });

/** A TCP connection that reads nothing unless it is told to. */
async function silent(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  cleanups.push(() => socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.pause();
  return socket;
}

function post(port: number, body: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json", "Content-Length": body.length };
    const sent = request({ port, method: "POST", headers, agent: false }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

async function openSocket(port: number): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`);
  cleanups.push(() => socket.terminate());
  socket.on("error", () => undefined);
  await once(socket, "open");
  return socket;
}

/** Looks all the time; @returns the most that was held at any look */
function watch({ unsent, unread }: ClientMemory) {
  const most = { unsent: 0, unread: 0 };
  let isOver = false;
  const look = () => {
    most.unsent = Math.max(most.unsent, unsent.totalBytes);
    most.unread = Math.max(most.unread, unread.totalBytes);
    if (!isOver) setImmediate(look);
  };
  look();
  cleanups.push(() => (isOver = true));
  return most;
}

describe("clients that take nothing of large answers", () => {
  it("are let go over HTTP: by the common bound, then by time; others are served", async () => {
    const { clock, memory, httpPort } = await startNode();
    const most = watch(memory);
    const head = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${LARGE_BATCH.length}\r\n\r\n`;
    for (let count = 0; count < CROWD; count++) {
      (await silent(httpPort)).write(head + LARGE_BATCH);
    }
    // The system's own buffers take nothing like 5 MB of each.
    await until(() => memory.unsent.letGoCount >= CROWD - UNSENT_BYTES / 4_000_000, WAIT);
    expect(most.unsent).toBeGreaterThan(5_000_000);
    expect(most.unsent).toBeLessThanOrEqual(UNSENT_BYTES);
    const answer = await post(httpPort, LARGE_BATCH);
    expect([answer.status, JSON.parse(answer.text).length]).toEqual([200, 25]);
    expect(memory.unsent.totalBytes).toBeGreaterThan(5_000_000);
    clock.timeMs += 120_000;
    memory.unsent.sweep();
    expect(memory.unsent.totalBytes).toBe(0);
  });

  it("are let go over WebSocket in the same way", async () => {
    const { clock, memory, socketPort } = await startNode();
    const most = watch(memory);
    const url = `ws://127.0.0.1:${socketPort}`;
    for (let count = 0; count < CROWD; count++) {
      const socket = new WebSocket(url);
      socket.on("error", () => undefined);
      cleanups.push(() => socket.terminate());
      await once(socket, "open");
      socket.pause();
      socket.send(LARGE_BATCH);
    }
    await until(() => memory.unsent.letGoCount >= CROWD - UNSENT_BYTES / 4_000_000, WAIT);
    expect(most.unsent).toBeLessThanOrEqual(UNSENT_BYTES);
    const reader = new WebSocket(url);
    cleanups.push(() => reader.terminate());
    await once(reader, "open");
    reader.send(LARGE_BATCH);
    const [answer] = await once(reader, "message");
    expect(JSON.parse(String(answer))).toHaveLength(25);
    clock.timeMs += 120_000;
    memory.unsent.sweep();
    expect(memory.unsent.totalBytes).toBe(0);
    expect(reader.readyState).toBe(WebSocket.OPEN);
  });
});

describe("pages of the node", () => {
  it("are counted as all that clients may leave untaken", async () => {
    const clock = new TestClock();
    const memory = createClientMemory(clock);
    const log = createLogger({ component: "test", level: "silent" });
    const metrics = createMetrics({ processMetrics: false });
    metrics.gauge("test_lines", "Lines as of many parts of a node", ["line"], (gauge) => {
      for (let line = 0; line < 2_000; line++) gauge.set({ line: String(line) }, line);
    });
    const types = loadDescriptors();
    const methods = types.services().flatMap((service) => [...service.methods.values()]);
    const handlers = Object.fromEntries(methods.map(({ path }) => [path, () => ({})]));
    const queries = new QueryRegistry(types, handlers, () => 1, 20_000);
    const shared = { listen: LISTEN, memory, log };
    const rest = await startRestServer({
      ...shared,
      queries,
      allowedOrigins: [],
      isSwaggerServed: true,
      maxConnections: 10,
      maxBodyBytes: 1_000,
      requestsPerSecond: 0,
      clock,
    });
    const page = await startMetricsServer({ ...shared, metrics });
    cleanups.push(() => Promise.all([rest.stop(), page.stop()]));
    const hold = jest.spyOn(memory.unsent, "hold");
    const [docs, figures] = [
      `http://127.0.0.1:${rest.address.port}/swagger/openapi.json`,
      `http://127.0.0.1:${page.address.port}/metrics`,
    ];
    for (const [count, url] of [docs, figures].entries()) {
      const text = await (await fetch(url)).text();
      expect([url, text.length > 16_384, hold.mock.calls.length]).toEqual([url, true, count + 1]);
    }
    expect(memory.unsent.totalBytes).toBe(0);
  });
});

describe("clients that begin large requests and do not end them", () => {
  const part = `[${" ".repeat(400_000)}`;

  it("are refused over HTTP when there is no room for all of them; small ones get in", async () => {
    const { memory, httpPort } = await startNode();
    const most = watch(memory);
    const statuses: string[] = [];
    for (let count = 0; count < CROWD; count++) {
      const socket = connect(httpPort, "127.0.0.1");
      cleanups.push(() => socket.destroy());
      socket.on("error", () => undefined);
      socket.once("data", (chunk) => statuses.push(chunk.toString().slice(9, 12)));
      socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n${part}`);
    }
    await until(() => statuses.length >= CROWD - UNREAD_BYTES / part.length, WAIT);
    expect(new Set(statuses)).toEqual(new Set(["503"]));
    expect(most.unread).toBeLessThanOrEqual(UNREAD_BYTES);
    expect(await post(httpPort, SMALL_CALL)).toMatchObject({ status: 200 });
    expect(await post(httpPort, LARGE_BATCH)).toMatchObject({ status: 200 });
  });

  it("are let go over WebSocket, where each may send a large message in pieces", async () => {
    const { clock, memory, socketPort } = await startNode();
    const most = watch(memory);
    let ended = 0;
    for (let count = 0; count < CROWD; count++) {
      const socket = new WebSocket(`ws://127.0.0.1:${socketPort}`);
      cleanups.push(() => socket.terminate());
      socket.on("error", () => undefined);
      socket.once("close", () => ended++);
      await once(socket, "open");
      socket.send(part, { fin: false });
    }
    await until(() => ended >= CROWD - UNREAD_BYTES / part.length, WAIT);
    // A chunk may be counted that has ended a message before.
    expect(most.unread).toBeLessThanOrEqual(UNREAD_BYTES);
    expect(memory.unread.totalBytes).toBeGreaterThan(0);
    clock.timeMs += 120_000;
    memory.unread.sweep();
    expect(memory.unread.totalBytes).toBe(0);
    await until(() => ended === CROWD, WAIT);
  });

  it("are let go over WebSocket though they answer pings between the pieces", async () => {
    const { memory, socketPort } = await startNode(200_000);
    const socket = await openSocket(socketPort);
    const ended = once(socket, "close");
    socket.send("[", { fin: false });
    for (let piece = 0; piece < 40; piece++) {
      socket.pong();
      socket.send(" ".repeat(10_000), { fin: false });
      socket.ping();
      await Promise.race([once(socket, "pong"), ended]);
    }
    expect(memory.unread.letGoCount).toBe(1);
  });

  it("are let go over WebSocket by what their pieces take, however small these are", async () => {
    const { memory, socketPort } = await startNode();
    for (let count = 0; count < 4; count++) {
      const socket = await openSocket(socketPort);
      socket.send("[", { fin: false });
      for (let piece = 0; piece < 8_000; piece++) socket.send(" ", { fin: false });
    }
    await until(() => memory.unread.letGoCount >= 2, { timeoutMs: 15_000 });
  });

  it("are none: pings and pongs, however many", async () => {
    const { memory, socketPort } = await startNode();
    const socket = await openSocket(socketPort);
    const answered = once(socket, "pong");
    for (let count = 0; count < 2_000; count++) socket.pong("a name of some length");
    socket.ping();
    await answered;
    expect([memory.unread.totalBytes, memory.unread.letGoCount]).toEqual([0, 0]);
  });

  it("are none: whole ones that wait behind another on a connection that ends", async () => {
    const { memory, node, httpPort } = await startNode();
    const answered = createGate();
    // Before the servers end, which wait for their answers.
    cleanups.push(answered.open);
    node.calls.call = async () => {
      await answered.opened;
      return node.calls.result;
    };
    const call = { jsonrpc: "2.0", id: 1, method: "eth_call", params: [{ to: BOB.address }] };
    const body = JSON.stringify(call) + " ".repeat(300_000);
    const socket = connect(httpPort, "127.0.0.1");
    cleanups.push(() => socket.destroy());
    const head = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`;
    socket.write((head + body).repeat(3));
    await until(() => memory.unread.totalBytes >= 3 * body.length, WAIT);
    socket.destroy();
    await until(() => memory.unread.totalBytes <= 2 * body.length, WAIT);
    answered.open();
    // Others are served meanwhile.
    for (let count = 0; count < 20; count++) await post(httpPort, SMALL_CALL);
    await until(() => memory.unread.totalBytes + memory.unsent.totalBytes === 0, WAIT);
  });

  it("are none: whole messages, however many, leave nothing behind", async () => {
    const { memory, socketPort } = await startNode();
    const socket = new WebSocket(`ws://127.0.0.1:${socketPort}`);
    cleanups.push(() => socket.terminate());
    await once(socket, "open");
    const call = `${SMALL_CALL}${" ".repeat(300_000)}`;
    for (let count = 0; count < 30; count++) {
      socket.send(call);
      const [answer] = await once(socket, "message");
      expect(JSON.parse(String(answer)).result).toBe("0x1b1c");
    }
    expect([memory.unread.totalBytes, memory.unsent.totalBytes]).toEqual([0, 0]);
    expect(memory.unread.letGoCount).toBe(0);
  });
});

describe("requests that are too large", () => {
  // go-ethereum ends the connection with 1009; an answer without an id is one that nobody waits for.
  it("end their connection over WebSocket, so that no client waits for an answer", async () => {
    const { memory, socketPort } = await startNode(64_000_000);
    const method = (name: string) => `{"jsonrpc":"2.0","id":1,"method":"${name}"}`;
    const values = `{"jsonrpc":"2.0","id":1,"method":"web3_sha3","params":[0${",0".repeat(250_000)}]}`;
    const tooLarge = {
      "a call of more than 5 MB": method("x".repeat(6_000_000)),
      "a call of more than 25 MB": method("x".repeat(26_000_000)),
      "a call of too many values": values,
      "a batch with such a call": `[${SMALL_CALL},${method("x".repeat(6_000_000))}]`,
      "a batch with such values": `[${SMALL_CALL},${values}]`,
    };
    for (const [what, text] of Object.entries(tooLarge)) {
      const socket = await openSocket(socketPort);
      const answered = once(socket, "message").then(([answer]) => String(answer));
      const closed = once(socket, "close").then(([status]) => status);
      socket.send(text);
      expect([what, await Promise.race([answered, closed])]).toEqual([what, 1009]);
    }
    await until(() => memory.unread.totalBytes === 0, WAIT);
  });
});

describe("large batches", () => {
  it("come over WebSocket in fragments of a kilobyte, as clients of Go send them", async () => {
    const { socketPort } = await startNode(64_000_000);
    const socket = await openSocket(socketPort);
    const blank = " ".repeat(4_000_000);
    const batch = `[${Array.from({ length: 5 }, () => SMALL_CALL).join(`,${blank}`)}]`;
    const fragmentBytes = 900;
    for (let at = 0; at < batch.length; at += fragmentBytes) {
      const end = at + fragmentBytes;
      socket.send(batch.slice(at, end), { fin: end >= batch.length });
    }
    const ended = once(socket, "close").then(([status, reason]) => `${status} ${reason}`);
    const [answer] = await Promise.race([once(socket, "message"), ended]);
    expect(JSON.parse(String(answer))).toHaveLength(5);
  });

  it("are answered like small ones, and refused in the same words", async () => {
    const { httpPort } = await startNode(20_000_000);
    const blank = " ".repeat(200_000);
    const answer = async (body: string) => JSON.parse((await post(httpPort, body)).text);
    expect(await answer(`[${SMALL_CALL},${blank}${SMALL_CALL}]`)).toEqual([
      { jsonrpc: "2.0", id: 1, result: "0x1b1c" },
      { jsonrpc: "2.0", id: 1, result: "0x1b1c" },
    ]);
    expect((await answer(`[${SMALL_CALL},${blank}]`)).error).toEqual({
      code: -32700,
      message: "parse error",
    });
    expect((await answer(`[${blank}]`)).error.message).toBe("empty batch");
    const many = `[${`${SMALL_CALL},${" ".repeat(100)}`.repeat(1_000)}${SMALL_CALL}]`;
    expect(await answer(many)).toEqual([
      { jsonrpc: "2.0", id: 1, error: { code: -32600, message: "batch too large" } },
    ]);
    const one = `[{"jsonrpc":"2.0","id":1,"method":"${"x".repeat(6_000_000)}"}]`;
    expect((await answer(one)).error).toEqual({ code: -32600, message: "request too large" });
  });
});
