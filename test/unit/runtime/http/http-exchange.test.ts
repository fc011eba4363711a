/**
 * Calls of explorer and console, which carry keys, go to the servers of the settings and nowhere else. With
 * NODE_USE_ENV_PROXY newer versions of Node send those of `fetch`, and of their common agents, through a proxy.
 */
import * as http from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, expect, it } from "@jest/globals";
import { z } from "zod";
import { ExchangeApi } from "../../../../console/sources/exchange-api.js";
import { readPartLights } from "../../../../console/sources/part-lights.js";
import { getText } from "../../../../explorer/sources/json-get.js";

const asked: string[] = [];
let body = "{}";
let status = 200;
const server = http.createServer((request, response) => {
  let text = "";
  request.on("data", (chunk: Buffer) => {
    text += chunk.toString("utf8");
  });
  request.on("end", () => {
    const { authorization = "-", "content-length": length = "-" } = request.headers;
    asked.push(`${request.method} ${request.url} ${authorization} ${length} ${text}`);
    response.writeHead(status, { location: "/elsewhere" }).end(body);
  });
});
const { fetch } = globalThis;
const { globalAgent } = http;
const { signal } = new AbortController();
let url = "";

/** What would go through the proxy. */
function astray(): never {
  throw new Error("through a proxy");
}

beforeAll(async () => {
  globalThis.fetch = astray;
  Object.assign(globalAgent, { createConnection: astray });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  asked.length = 0;
  [body, status] = ["{}", 200];
});
afterAll(() => {
  globalThis.fetch = fetch;
  Reflect.deleteProperty(globalAgent, "createConnection");
  server.close();
});

function api(): ExchangeApi {
  const options = { depositUrl: url, withdrawalUrl: url, timeoutMs: 10_000 };
  return new ExchangeApi(options, { user: "ann", apiKey: "secret" });
}

const question = { api: "deposit", path: "/v1/deposits", schema: z.object({}) } as const;

it("are made by a client of their own", async () => {
  expect(await api().get({ ...question, query: { limit: 5 } }, signal)).toEqual({});
  const call = { ...question, body: { a: "ü" }, reason: "why", idempotencyKey: "k" };
  expect(await api().post(call, signal)).toEqual({});
  const part = { part: "watcher", url, isDispensable: false };
  expect(await readPartLights([part], signal)).toEqual([
    { part: "watcher", verdict: "pass", reason: "" },
  ]);
  const limits = { timeoutMs: 10_000, maxBytes: 2, signal };
  expect(await getText(new URL("/v1/tokens", url), limits)).toEqual({ status: 200, text: "{}" });
  expect(asked).toEqual([
    "GET /v1/deposits?limit=5 Bearer secret - ",
    'POST /v1/deposits Bearer secret 10 {"a":"ü"}',
    "GET /ready - - ",
    "GET /v1/tokens - - ",
  ]);
});

it("are led nowhere else, and read no more than they have room for", async () => {
  const limits = { timeoutMs: 10_000, maxBytes: 2, signal };
  status = 302;
  await expect(getText(new URL(url), limits)).rejects.toThrow("redirect");
  await expect(api().get(question, signal)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  expect(asked).toHaveLength(2);
  [body, status] = ["x".repeat(1_000_000), 200];
  await expect(getText(new URL(url), limits)).rejects.toThrow("too long");
});

it("end with their time, and with the signal's reason", async () => {
  const silent = http.createServer(() => undefined);
  await new Promise<void>((resolve) => {
    silent.listen(0, "127.0.0.1", resolve);
  });
  const place = new URL(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`);
  const late = getText(place, { timeoutMs: 50, maxBytes: 2, signal });
  await expect(late).rejects.toThrow("nothing came within 50 ms");
  const stopping = new AbortController();
  const stopped = getText(place, { timeoutMs: 10_000, maxBytes: 2, signal: stopping.signal });
  stopping.abort(new Error("enough"));
  await expect(stopped).rejects.toThrow("enough");
  silent.close();
});

it("end with the connection, where another protocol follows unasked", async () => {
  const sockets: Socket[] = [];
  let said = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: tls\r\n\r\n";
  const other = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.write(said);
      if (said.includes("200")) socket.end();
    });
  });
  await new Promise<void>((resolve) => {
    other.listen(0, "127.0.0.1", resolve);
  });
  const place = new URL(`http://127.0.0.1:${(other.address() as AddressInfo).port}`);
  const limits = { timeoutMs: 10_000, maxBytes: 2, signal };
  try {
    await expect(getText(place, limits)).rejects.toThrow("ended without an answer");
    // The end of the connection is the end of this answer.
    said = "HTTP/1.1 200 OK\r\n\r\n{}";
    expect((await getText(place, limits)).text).toBe("{}");
  } finally {
    for (const socket of sockets) socket.destroy();
    other.close();
  }
});

it("tell why a part is not ready, in its own words where it has some", async () => {
  const lights = () => readPartLights([{ part: "indexer", url, isDispensable: true }], signal);
  status = 503;
  for (const [said, reason] of [
    ['{"reason":"it is behind"}', "it is behind"],
    ["<html>", ""],
    [JSON.stringify({ reason: "x".repeat(5_000) }), ""],
  ] as const) {
    body = said;
    expect(await lights()).toEqual([{ part: "indexer", verdict: "warn", reason }]);
  }
});
