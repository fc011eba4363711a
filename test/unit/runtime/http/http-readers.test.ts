/** Open APIs as browsers and caches read them: HEAD, streams, and pages of other origins. */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "@jest/globals";
import { HttpError } from "../../../../runtime/http/http-errors.js";
import { singleKeyAccess } from "../../../helpers/services/single-key.js";
import {
  createHttpServer,
  type HttpServer,
  type HttpServerOptions,
} from "../../../../runtime/http/http-server.js";
import { isAllowedOrigin } from "../../../../runtime/http/readers.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import { createGate } from "../../../helpers/gate.js";
import { rawRequest } from "../../../helpers/http/raw-request.js";
import { until } from "../../../helpers/until.js";

const apiSpecPath = fileURLToPath(new URL("../../../fixtures/runtime/api.yaml", import.meta.url));
const PAGE = "https://front.example";

let server: HttpServer | undefined;

afterEach(async () => {
  await server?.stop();
});

async function serve(options: Partial<HttpServerOptions>): Promise<number> {
  server = createHttpServer({
    name: "test-api",
    apiSpecPath,
    listen: { host: "127.0.0.1", port: 0 },
    routes: [
      {
        method: "get",
        path: "/v1/things",
        scope: "things:read",
        handler: async () => ({ body: { limit: 5 } }),
      },
      {
        method: "post",
        path: "/v1/things",
        scope: "things:write",
        handler: async ({ body }) => ({ status: 201, body: { made: JSON.stringify(body) } }),
      },
    ],
    mapError: (error) => {
      const status = error instanceof HttpError ? error.status : 500;
      return { status, body: { code: "REFUSED" } };
    },
    readiness: () => ({ ready: true }),
    log: createLogger({ component: "test", level: "silent" }),
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 1_000,
    ...options,
  });
  await server.start();
  return server.port;
}

describe("HEAD", () => {
  it("is what GET says, without the body", async () => {
    const port = await serve({});
    const [got, head] = await Promise.all(
      ["GET", "HEAD"].map((method) => rawRequest(port, "/v1/things?limit=5", { method })),
    );
    expect(head).toMatchObject({ status: 200, text: "" });
    for (const name of ["content-type", "content-length"]) {
      expect(head?.headers[name]).toBe(got?.headers[name]);
    }
    expect((await rawRequest(port, "/v1/nothing", { method: "HEAD" })).status).toBe(404);
  });

  it("of a stream ends with its head, and nothing of the stream is begun", async () => {
    let isBegun = false;
    async function* pieces(): AsyncGenerator<Buffer, void> {
      isBegun = true;
      yield Buffer.from("x".repeat(100));
      await new Promise(() => undefined);
    }
    const route = { method: "get" as const, path: "/v1/things" };
    const headers = { "content-type": "text/plain" };
    const port = await serve({
      routes: [{ ...route, handler: async () => ({ headers, stream: pieces() }) }],
    });
    const head = await rawRequest(port, "/v1/things", { method: "HEAD" });
    expect([head.status, head.headers["content-type"]]).toEqual([200, "text/plain"]);
    expect(isBegun).toBe(false);
  });

  it("of an API with keys is not another word for GET", async () => {
    const port = await serve({ access: singleKeyAccess("k".repeat(64)) });
    const headers = { authorization: `Bearer ${"k".repeat(64)}` };
    expect((await rawRequest(port, "/v1/things", { method: "HEAD", headers })).status).toBe(405);
  });
});

describe("a stream that fails after its first piece", () => {
  const lines: string[] = [];
  const log = createLogger({
    component: "test",
    destination: { write: (line) => lines.push(line) },
  });
  const isGone = createGate();

  function serveStream(before: () => Promise<unknown>): Promise<number> {
    lines.length = 0;
    async function* pieces(): AsyncGenerator<Buffer, void> {
      yield Buffer.from("a,b\n");
      await before();
      throw new Error("the database is gone");
    }
    const handler = async () => ({ headers: { "content-type": "text/csv" }, stream: pieces() });
    return serve({ log, routes: [{ method: "get", path: "/v1/things", handler }] });
  }

  it.each(["1.0", "1.1"])("looks whole to nobody, also by HTTP/%s, and is logged", async (of) => {
    const port = await serveStream(() => sleep(50));
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    const told = new Promise((resolve) => {
      socket.once("error", resolve);
      socket.once("end", () => resolve("a clean end"));
    });
    socket.write(`GET /v1/things HTTP/${of}\r\nHost: x\r\n\r\n`);
    expect(await told).toMatchObject({ code: "ECONNRESET" });
    expect(text).toContain("a,b\n");
    // The client may hear of it before the line is written.
    await until(() => lines.length > 0, { timeoutMs: 30_000 });
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      level: "error",
      server: "test-api",
      err: { message: "the database is gone" },
    });
  });

  it("is nobody's concern where the client has gone before", async () => {
    let isOver = false;
    const port = await serveStream(() => isGone.opened.finally(() => (isOver = true)));
    const socket = connect(port, "127.0.0.1");
    socket.write("GET /v1/things HTTP/1.1\r\nHost: x\r\n\r\n");
    await new Promise((resolve) => {
      socket.once("data", resolve);
    });
    socket.destroy();
    await server?.stop();
    isGone.open();
    await until(() => isOver, { timeoutMs: 30_000 });
    await sleep(0);
    expect(lines).toEqual([]);
  });
});

describe("a method that a path does not have", () => {
  it("is answered with those that it has", async () => {
    const open = await serve({});
    const answer = await rawRequest(open, "/v1/things?limit=5", { method: "DELETE" });
    expect([answer.status, answer.headers["allow"]]).toEqual([405, "GET, HEAD, POST"]);
    expect((await rawRequest(open, "/v1/nothing")).headers["allow"]).toBeUndefined();
    await server?.stop();
    const gated = await serve({ access: singleKeyAccess("k".repeat(64)) });
    const headers = { authorization: `Bearer ${"k".repeat(64)}` };
    const refused = await rawRequest(gated, "/v1/things", { method: "PUT", headers });
    expect([refused.status, refused.headers["allow"]]).toEqual([405, "GET, POST"]);
  });
});

describe("a 5xx", () => {
  it("is an error in the log unless nobody has to act on it", async () => {
    const lines: string[] = [];
    const log = createLogger({
      component: "test",
      destination: { write: (line) => lines.push(line) },
    });
    for (const isExpected of [true, false]) {
      const port = await serve({
        log,
        routes: [
          { method: "get", path: "/v1/things", handler: () => Promise.reject(new Error("gone")) },
        ],
        mapError: () => ({ status: 503, body: {}, isExpected }),
      });
      expect((await rawRequest(port, "/v1/things")).status).toBe(503);
      expect(lines.filter((line) => line.includes('"error"')).length).toBe(isExpected ? 0 : 1);
      await server?.stop();
    }
  });
});

describe("pages of other origins", () => {
  const preflight = (origin: string) => ({
    method: "OPTIONS",
    headers: { origin, "access-control-request-method": "GET" },
  });

  it("may read where they are allowed, and are told so beforehand", async () => {
    const port = await serve({ corsOrigins: [PAGE] });
    const asked = await rawRequest(port, "/v1/things", preflight(PAGE));
    expect(asked.status).toBe(204);
    expect(asked.headers["access-control-allow-methods"]).toContain("GET");
    for (const target of ["/v1/things", "/v1/nothing"]) {
      const { headers } = await rawRequest(port, target, { headers: { origin: PAGE } });
      expect(headers["access-control-allow-origin"]).toBe(PAGE);
      expect(headers["vary"]).toBe("Origin");
    }
    for (const origin of ["https://other.example", `${PAGE}.evil`, "null"]) {
      const other = await rawRequest(port, "/v1/things", { headers: { origin } });
      expect(other.headers["access-control-allow-origin"]).toBeUndefined();
      expect((await rawRequest(port, "/v1/things", preflight(origin))).status).toBe(405);
    }
  });

  it("may all read where all are allowed, and none where nothing is said", async () => {
    const all = await serve({ corsOrigins: ["*"] });
    const { headers } = await rawRequest(all, "/v1/things", { headers: { origin: PAGE } });
    expect(headers["access-control-allow-origin"]).toBe("*");
    await server?.stop();
    const none = await serve({});
    const answer = await rawRequest(none, "/v1/things", { headers: { origin: PAGE } });
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-"))).toEqual([]);
    expect((await rawRequest(none, "/v1/things", preflight(PAGE))).status).toBe(405);
  });
});

describe("origins that an operator names", () => {
  // As rs/cors reads them, behind which CometBFT, the SDK's gateway and go-ethereum stand.
  it.each([
    ["https://front.example", PAGE, true],
    ["https://Front.Example", PAGE, true],
    ["https://front.example/", PAGE, true],
    ["https://*.example", PAGE, true],
    ["https://*.example", "https://a.b.example", true],
    ["http://localhost:*", "http://localhost:5173", true],
    ["*", PAGE, true],
    ["https://*.example", "http://front.example", false],
    ["https://*.example", "https://.example.evil", false],
    ["https://front*front.example", "https://front.example", false],
    ["https://front.example", "https://front.example.evil", false],
    ["http://front.example", PAGE, false],
    ["", PAGE, false],
  ])("%j and a page of %j: %j", (allowed, origin, isAllowed) => {
    expect(isAllowedOrigin(origin, ["https://other.example", allowed])).toBe(isAllowed);
  });
});
