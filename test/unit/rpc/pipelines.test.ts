/** One connection to the node that does not wait for its answers: what it asked is answered first, and in bounds. */
import { createServer, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import { createClientMemory } from "../../../node/rpc/client-memory.js";
import { startEvmHttpServer } from "../../../node/rpc/evm/http-server.js";
import {
  listen,
  readBody,
  type RpcServer,
  sendPieces,
  stopServer,
} from "../../../node/rpc/http-listener.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { createGate } from "../../helpers/gate.js";
import { until } from "../../helpers/until.js";
import { ALICE, BOB, createTestNode, signLegacy } from "./evm/fixture.js";

const HERE = { host: "127.0.0.1", port: 0 };
const log = createLogger({ component: "test", level: "silent" });
const WAIT = { timeoutMs: 20_000 };

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

function open({ address }: Pick<RpcServer, "address">) {
  const socket: Socket = connect(address.port, address.host);
  cleanups.push(() => socket.destroy());
  const seen = { text: "", isEnded: false };
  socket.on("data", (chunk: Buffer) => (seen.text += chunk.toString("latin1")));
  socket.once("end", () => (seen.isEnded = true));
  return { socket, seen };
}

const statusesIn = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 ([0-9]+)/g)].map(([, status]) => status);

/** A server that answers when it is told to. */
async function startSlow(refusal?: (message: string) => unknown) {
  const waiting: ServerResponse[] = [];
  const server = createServer((_request, response) => waiting.push(response));
  const address = await listen(server, { name: "test", listen: HERE, log }, refusal);
  cleanups.push(() => stopServer(server));
  const answerAll = () => {
    for (const response of waiting.splice(0)) response.end("here");
  };
  return { address, waiting, answerAll };
}

describe("what cannot be read", () => {
  it("is told to who sent a transaction behind the answer to that", async () => {
    const node = createTestNode();
    const released = createGate();
    const submit = node.pool.submit.bind(node.pool);
    let isAsked = false;
    node.pool.submit = async (raws) => {
      isAsked = true;
      await released.opened;
      return submit(raws);
    };
    const memory = createClientMemory(systemClock);
    const server = await startEvmHttpServer(node.api, { listen: HERE, allowedOrigins: [], memory });
    // In the other order: its end waits for its answers.
    cleanups.push(() => server.stop(), released.open);
    const raw = await signLegacy(ALICE, { nonce: 0, to: BOB.address, value: 5n });
    const call = { jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] };
    const body = JSON.stringify(call);
    const { socket, seen } = open(server);
    // As of a client that sends the zero behind its text, and does not count it.
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}\0`);
    await until(() => isAsked, WAIT);
    // By the time that another is answered the zero was met.
    const other = open(server);
    other.socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => other.seen.text.includes("ok"), WAIT);
    expect(seen.text).toBe("");
    released.open();
    await until(() => seen.isEnded, WAIT);
    expect(statusesIn(seen.text)).toEqual(["200", "400"]);
    expect(seen.text).toMatch(/"id":1,"result":"0x[0-9a-f]{64}"/);
    expect(node.pool.submitted).toHaveLength(1);
  });

  it("is told at once where nothing was asked, and the connection is closed", async () => {
    const { seen, socket } = open(await startSlow());
    socket.write("no request\r\n\r\n");
    await until(() => seen.isEnded, WAIT);
    expect(seen.text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n(.+\r\n)*\r\n\{"message":".+"\}$/);
    const long = open(await startSlow());
    long.socket.write(`GET / HTTP/1.1\r\nHost: x\r\nX-Pad: ${"x".repeat(20_000)}\r\n\r\n`);
    await until(() => long.seen.isEnded, WAIT);
    expect(statusesIn(long.seen.text)).toEqual(["431"]);
  });
});

describe("what others may have read in another way", () => {
  const chunked = "5\r\n[{}]\n\r\n0\r\n\r\n";
  const heads: readonly (readonly [name: string, head: string])[] = [
    ["a second Host", "GET / HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n"],
    [
      "another coding",
      `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n${chunked}`,
    ],
  ];

  it.each(heads)("is refused, and no server sees it: %s", async (_name, head) => {
    const server = await startSlow((message) => ({ code: 3, message, details: [] }));
    const { socket, seen } = open(server);
    socket.write(head);
    await until(() => seen.text.endsWith("}"), WAIT);
    expect(seen.text).toMatch(/^HTTP\/1\.1 400 .*\{"code":3,"message":".+","details":\[\]\}$/s);
    expect(server.waiting).toEqual([]);
    // Those who ask in one way alone are answered on the same connection.
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`);
    await until(() => server.waiting.length === 1, WAIT);
    server.answerAll();
    await until(() => seen.text.endsWith("here"), WAIT);
    expect(statusesIn(seen.text)).toEqual(["400", "200"]);
  });
});

describe("requests without a wait for their answers", () => {
  it("are read no further while too many have none", async () => {
    const server = await startSlow();
    const { socket, seen } = open(server);
    const asked = `GET / HTTP/1.1\r\nHost: x\r\nX-Pad: ${"x".repeat(8_000)}\r\n\r\n`;
    socket.write(asked.repeat(2_000));
    await until(() => server.waiting.length >= 24, WAIT);
    const other = open(server);
    other.socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const isOther = ({ req }: ServerResponse) => req.headers["x-pad"] === undefined;
    await until(() => server.waiting.some(isOther), WAIT);
    expect(server.waiting.length).toBeLessThan(64);
    await until(() => {
      server.answerAll();
      return seen.text.split("here").length === 2_001;
    }, WAIT);
  });
});

it("large requests take no room once their answers are made, also where nobody takes these", async () => {
  const memory = createClientMemory(systemClock);
  const answer = Buffer.alloc(16 * 1024 * 1024, " ");
  let answered = 0;
  const server = createServer((request, response) => {
    const exchanged = { request, response, memory };
    readBody(
      exchanged,
      () => 1_000_000,
      (body) => {
        expect(body).toHaveLength(100_000);
        sendPieces(exchanged, 200, [answer], {});
        answered += 1;
      },
    );
  });
  const { port, host } = await listen(server, { name: "test", listen: HERE, log });
  cleanups.push(() => stopServer(server));
  const socket = connect(port, host);
  cleanups.push(() => socket.destroy());
  socket.on("error", () => undefined);
  socket.pause();
  const asked = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n${" ".repeat(100_000)}`;
  // The answers behind the first have no socket yet.
  socket.write(asked.repeat(3));
  await until(() => answered === 3, WAIT);
  expect(memory.unread.totalBytes).toBe(0);
  expect(memory.unsent.totalBytes).toBe(3 * answer.length);
});
