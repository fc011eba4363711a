/** Servers that end while clients ask on: nobody is cut off in the middle of an answer. */
import { createServer } from "node:http";
import { connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, it } from "@jest/globals";
import { listen, stopServer } from "../../../../node/rpc/http-listener.js";
import { PipelineBound } from "../../../../runtime/http/http-pipeline.js";
import { createHttpServer } from "../../../../runtime/http/http-server.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import { PageListener } from "../../../../web/server/page-listener.js";
import { createGate } from "../../../helpers/gate.js";
import { until } from "../../../helpers/until.js";

const HERE = { host: "127.0.0.1", port: 0 };
const WAIT = { timeoutMs: 30_000 };

/** What a server does with a request of `/v1/things/slow` and of any other thing. */
type Answer = (path: string) => Promise<string>;

interface Started {
  readonly port: number;
  stop(): Promise<void>;
}

async function startApi(answer: Answer): Promise<Started> {
  const server = createHttpServer({
    name: "test-api",
    apiSpecPath: fileURLToPath(new URL("../../../fixtures/runtime/api.yaml", import.meta.url)),
    listen: HERE,
    routes: [
      {
        method: "get",
        path: "/v1/things/{id}",
        handler: async ({ path }) => ({ body: { id: await answer(path) } }),
      },
    ],
    mapError: () => ({ status: 500, body: { code: "INTERNAL" } }),
    readiness: () => ({ ready: true }),
    log: createLogger({ component: "test", level: "silent" }),
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 1_000,
  });
  await server.start();
  return server;
}

async function startPages(answer: Answer): Promise<Started> {
  const listener = new PageListener({
    owner: "the pages",
    listen: HERE,
    pipelines: new PipelineBound(),
    app: (request, response) =>
      void answer(request.url ?? "").then((text) => response.end(JSON.stringify({ id: text }))),
  });
  await listener.start();
  return listener;
}

async function startNode(answer: Answer): Promise<Started> {
  const server = createServer((request, response) => {
    void answer(request.url ?? "").then((text) => response.end(JSON.stringify({ id: text })));
  });
  const { port } = await listen(server, "test", HERE);
  return { port, stop: () => stopServer(server) };
}

const servers = [
  ["an API", startApi],
  ["pages", startPages],
  ["the node", startNode],
] as const;

it.each(servers)(
  "a client of %s that asks on is answered, and told that this was the last",
  async (_of, start) => {
    const [arrived, released] = [createGate(), createGate()];
    const server = await start(async (path) => {
      if (path.endsWith("/slow")) {
        arrived.open();
        await released.opened;
      }
      return path;
    });
    const { port } = server;
    const socket = connect(port, "127.0.0.1");
    let text = "";
    let isEnded = false;
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    socket.once("end", () => (isEnded = true));
    const ask = (name: string) =>
      socket.write(`GET /v1/things/${name} HTTP/1.1\r\nHost: x\r\n\r\n`);
    ask("slow");
    await arrived.opened;
    const stopped = server.stop();
    try {
      await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
      // By then it has ended the connections that are idle.
      for (let turn = 0; turn < 4; turn += 1) await nextTurn();
      released.open();
      await until(() => text.includes('{"id":"/v1/things/slow"}'), WAIT);
      text = "";
      ask("next");
      await until(() => isEnded, WAIT);
      expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n(.+\r\n)*Connection: close\r\n/);
      expect(text).toContain('{"id":"/v1/things/next"}');
      await stopped;
    } finally {
      released.open();
      socket.destroy();
      await stopped;
    }
  },
);

it.each(servers)(
  "a request to %s that is on its way when it ends is answered",
  async (_of, start) => {
    const server = await start((path) => Promise.resolve(path));
    const socket = connect(server.port, "127.0.0.1");
    let text = "";
    let isOver = false;
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    socket.once("close", () => (isOver = true));
    socket.once("error", () => (isOver = true));
    const ask = (name: string) =>
      socket.write(`GET /v1/things/${name} HTTP/1.1\r\nHost: x\r\n\r\n`);
    ask("first");
    await until(() => text.includes('{"id":"/v1/things/first"}'), WAIT);
    // Sent, and not read: this process does both.
    ask("second");
    await server.stop();
    await until(() => isOver, WAIT);
    expect(text).toContain('{"id":"/v1/things/second"}');
  },
);
