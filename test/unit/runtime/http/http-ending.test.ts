/**
 * Servers that end while clients ask on: nobody is cut off in the middle of an answer. And what does not end
 * them: connections that cannot be taken.
 */
import { createServer } from "node:http";
import { connect, Server, Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, it, jest } from "@jest/globals";
import { listen, stopServer } from "../../../../node/rpc/http-listener.js";
import { PipelineBound } from "../../../../runtime/http/connections/pipeline.js";
import { boundConnections } from "../../../../runtime/http/connections/client-connections.js";
import { mostConnections } from "../../../../runtime/http/connections/listening.js";
import { createHttpServer, type HttpServerOptions } from "../../../../runtime/http/http-server.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import { PageListener } from "../../../../web/server/page-listener.js";
import { createGate } from "../../../helpers/gate.js";
import { until } from "../../../helpers/until.js";

const lines: string[] = [];
const log = createLogger({
  component: "test",
  destination: { write: (line) => lines.push(line) },
});

const HERE = { host: "127.0.0.1", port: 0 };
const WAIT = { timeoutMs: 30_000 };

/** What a server does with a request of `/v1/things/slow` and of any other thing. */
type Answer = (path: string) => Promise<string>;

interface Started {
  readonly port: number;
  stop(): Promise<void>;
}

/** Keys of which nobody has one. */
const KEYS = {
  authenticate: () => Promise.resolve(undefined),
} as unknown as NonNullable<HttpServerOptions["access"]>;

async function startApi(
  answer: Answer,
  options: Pick<HttpServerOptions, "access"> = {},
): Promise<Started> {
  const server = createHttpServer({
    name: "test-api",
    apiSpecPath: fileURLToPath(new URL("../../../fixtures/runtime/api.yaml", import.meta.url)),
    listen: HERE,
    routes: [
      {
        method: "get",
        path: "/v1/things/{id}",
        scope: "things:read",
        handler: async ({ path }) => ({ body: { id: await answer(path) } }),
      },
    ],
    mapError: () => ({ status: 500, body: { code: "INTERNAL" } }),
    readiness: () => ({ ready: true }),
    log,
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 1_000,
    ...options,
  });
  await server.start();
  return server;
}

async function startPages(answer: Answer): Promise<Started> {
  const listener = new PageListener({
    owner: "the pages",
    listen: HERE,
    log,
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
  const { port } = await listen(server, { name: "test", listen: HERE, log });
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

it.each(servers)("%s stays up where the system has no connection to give", async (_of, start) => {
  const listening = jest.spyOn(Server.prototype, "listen");
  const server = await start((path) => Promise.resolve(path));
  const [taking] = listening.mock.contexts;
  listening.mockRestore();
  try {
    lines.length = 0;
    for (const code of ["EMFILE", "ENFILE", "ENOBUFS"]) {
      const fault = Object.assign(new Error(`accept ${code}`), { code });
      (taking as Server).emit("error", fault);
    }
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "warn", err: { code: "EMFILE" } });
    const answer = await fetch(`http://127.0.0.1:${server.port}/v1/things/a`);
    expect(answer.status).toBe(200);
  } finally {
    await server.stop();
  }
});

/** A connection from an address, as the system would bring it. */
function connectionFrom(remoteAddress: string): Socket {
  return Object.defineProperty(new Socket(), "remoteAddress", { value: remoteAddress });
}

const closed = (socket: Socket) =>
  new Promise<void>((resolve) => void socket.once("close", () => resolve()).destroy());

it("one client has half of the connections of a server, and this machine all that there are", async () => {
  const server = createServer();
  boundConnections(server, { most: 20, isOpen: true });
  const arrive = (address: string) => {
    const socket = connectionFrom(address);
    server.emit("connection", socket);
    return socket;
  };
  const strangers = Array.from({ length: 12 }, () => arrive("203.0.113.1"));
  // The same one by another name.
  strangers.push(arrive("::ffff:203.0.113.1"));
  expect(strangers.map(({ destroyed }) => destroyed)).toEqual(
    strangers.map((_socket, at) => at >= 10),
  );
  const others = [arrive("203.0.113.2"), ...Array.from({ length: 9 }, () => arrive("127.0.0.1"))];
  expect(others.filter(({ destroyed }) => destroyed)).toEqual([]);
  await closed(strangers[0] as Socket);
  expect(arrive("203.0.113.1").destroyed).toBe(false);
  expect(server.maxConnections).toBe(20);
  server.closeAllConnections();
});

it.each([
  ["an open API", (answer: Answer) => startApi(answer), true],
  ["an API behind keys", (answer: Answer) => startApi(answer, { access: KEYS }), false],
  ["pages", startPages, true],
  ["the node", startNode, true],
] as const)("connections of a client are bounded: %s", async (_of, start, isBounded) => {
  const listening = jest.spyOn(Server.prototype, "listen");
  const server = await start((path) => Promise.resolve(path));
  const [taking] = listening.mock.contexts as Server[];
  listening.mockRestore();
  const most = taking?.maxConnections ?? 0;
  const sockets = Array.from({ length: most / 2 + 1 }, () => connectionFrom("203.0.113.1"));
  for (const socket of sockets) taking?.emit("connection", socket);
  const refused = sockets.filter(({ destroyed }) => destroyed).length;
  for (const socket of sockets) socket.destroy();
  await server.stop();
  expect(refused).toBe(isBounded ? 1 : 0);
});

it("a process has files left for all else beside the connections of its server", () => {
  const most = [1_000_000, 4_224, 1_024, 100].map((files) => mostConnections(4_096, files));
  expect(most).toEqual([4_096, 4_096, 896, 8]);
});
