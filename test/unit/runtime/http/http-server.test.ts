import { singleKeyAccess } from "../../../helpers/services/single-key.js";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { ResponseValidator } from "express-openapi-validator/dist/middlewares/openapi.response.validator.js";
import { BodySchemaParser } from "express-openapi-validator/dist/middlewares/parsers/body.parse.js";
import supertest from "supertest";
import { AppError, errorMessage } from "../../../../chain/errors.js";
import { HttpError } from "../../../../runtime/http/http-errors.js";
import type { HttpRequest, HttpRoute } from "../../../../runtime/http/http-route.js";
import {
  type HttpServer,
  type HttpServerOptions,
  type Readiness,
  createHttpServer,
} from "../../../../runtime/http/http-server.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import { createGate } from "../../../helpers/gate.js";

const fixture = (name: string) =>
  fileURLToPath(new URL(`../../../fixtures/runtime/${name}`, import.meta.url));

const KEY = "k".repeat(64);
let readiness: Readiness = { ready: true };
const logLines: string[] = [];

const routes: readonly HttpRoute[] = [
  {
    method: "get",
    path: "/v1/things",
    scope: "things:any",
    handler: async ({ query }) => ({ body: { limit: query["limit"] } }),
  },
  {
    method: "post",
    path: "/v1/things",
    scope: "things:any",
    handler: async ({ body }) => ({ status: 201, body: { made: JSON.stringify(body) } }),
  },
  {
    method: "get",
    path: "/v1/things/{id}",
    scope: "things:any",
    handler: async ({ params }) => {
      const { id = "" } = params;
      switch (id) {
        case "boom":
          throw new Error("a secret detail");
        case "absent":
          throw new AppError("THING_UNKNOWN", "no such thing");
        case "broken":
          return { body: { wrong: 1 } };
        case "bytes":
          return { bytes: Buffer.from('{"finished":true}'), headers: { "x-kind": "bytes" } };
        default:
          return { body: { id } };
      }
    },
  },
];

function mapError(error: unknown) {
  if (error instanceof HttpError) {
    return { status: error.status, body: { code: error.code, errors: error.errors } };
  }
  if (error instanceof AppError) {
    return { status: 404, body: { code: error.code, message: errorMessage(error) } };
  }
  return { status: 500, body: { code: "INTERNAL" } };
}

function makeServer(options: Partial<HttpServerOptions> = {}): HttpServer {
  return createHttpServer({
    name: "test-api",
    apiSpecPath: fixture("api.yaml"),
    listen: { host: "127.0.0.1", port: 0 },
    routes,
    access: singleKeyAccess(KEY),
    mapError,
    readiness: () => readiness,
    log: createLogger({
      component: "test",
      destination: { write: (line) => logLines.push(line) },
    }),
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 1_000,
    ...options,
  });
}

describe("HTTP server", () => {
  let server: HttpServer;
  const api = () => supertest(`http://127.0.0.1:${server.port}`);
  const get = (path: string) => api().get(path).set("authorization", `Bearer ${KEY}`);
  const post = (path: string) => api().post(path).set("authorization", `Bearer ${KEY}`);

  beforeAll(async () => {
    server = makeServer();
    await server.start();
  });

  afterAll(async () => {
    await server.stop();
  });

  it("hands validated and completed queries to the handler", async () => {
    expect((await get("/v1/things")).body).toEqual({ limit: 5 });
    expect((await get("/v1/things?limit=7")).body).toEqual({ limit: 7 });
    const numbers = ["Infinity", "-Infinity", "1e999", "1e0", "0x5", "%205", "5.0", "NaN"];
    const limits = ["11", "x", "1&limit=2", ...numbers].map((text) => `limit=${text}`);
    for (const query of [...limits, "unknown=1"]) {
      expect({ query, status: (await get(`/v1/things?${query}`)).status }).toEqual({
        query,
        status: 400,
      });
    }
  });

  it("sends no etag and no x-powered-by", async () => {
    const response = await get("/v1/things/a");
    expect(response.body).toEqual({ id: "a" });
    expect(response.headers).not.toHaveProperty("etag");
    expect(response.headers).not.toHaveProperty("x-powered-by");
  });

  it.each([
    ["no key", undefined],
    ["another key", `Bearer ${"x".repeat(64)}`],
    ["a prefix of the key", `Bearer ${KEY.slice(0, 10)}`],
    ["another scheme", `Basic ${KEY}`],
  ])("refuses %s with 401 before anything else is looked at", async (_name, value) => {
    const response = await api()
      .post("/v1/nothing")
      .set(value === undefined ? {} : { authorization: value })
      .send("{ not json");
    expect(response.status).toBe(401);
    expect(response.headers["www-authenticate"]).toBe("Bearer");
  });

  it("answers each kind of unusable request with its status, never 5xx", async () => {
    const json = { "content-type": "application/json" };
    const cases: readonly (readonly [number, supertest.Test])[] = [
      [404, get("/v1/nothing")],
      [404, get("/V1/things")],
      [405, api().delete("/v1/things").set("authorization", `Bearer ${KEY}`)],
      [415, post("/v1/things").set("content-type", "text/plain").send('{"amountAtoken":"1"}')],
      [415, post("/v1/things").set("content-type", "application/xml").send("<a/>")],
      [400, post("/v1/things").set(json).send("{")],
      [400, post("/v1/things").set(json).send("")],
      [400, post("/v1/things").set(json).send('{"amountAtoken":"01"}')],
      [400, post("/v1/things").set(json).send('{"amountAtoken":1}')],
      [400, post("/v1/things").set(json).send('{"amountAtoken":"1","x":1}')],
      [400, post("/v1/things").set(json).send('{"amountAtoken":"1","note":9007199254740993}')],
      [400, post("/v1/things").set(json).send('{"amountAtoken":"1","note":"\\u0000"}')],
      [415, post("/v1/things").unset("content-type").send(Buffer.from('{"amountAtoken":"1"}'))],
      [
        413,
        post("/v1/things")
          .set(json)
          .send(`{"amountAtoken":"${"1".repeat(2_000)}"}`),
      ],
      [400, get("/v1/things/%E0%A4%A")],
      [400, get("/v1/things/%00")],
      [400, get("/v1/things/123456789")],
    ];
    for (const [index, [status, call]] of cases.entries()) {
      const response = await call;
      expect({ index, status: response.status }).toEqual({ index, status });
      expect(response.body.code).toBe("INVALID_REQUEST");
    }
  });

  it("says of a body without a type which one it wants", async () => {
    for (const type of ["", "text/plain"]) {
      const { body } = await post("/v1/things")
        .set("content-type", type)
        .send('{"amountAtoken":"1"}');
      expect(body.errors).toEqual([
        {
          path: "/headers/content-type",
          message: "bodies are taken as Content-Type: application/json",
          errorCode: "",
        },
      ]);
    }
  });

  it("lets no client choose what is compiled and kept for its types", async () => {
    const compiled = jest.spyOn(BodySchemaParser.prototype, "parse");
    const kept = jest.spyOn(ResponseValidator.prototype, "_getOrBuildValidator");
    const judged = jest.spyOn(ResponseValidator.prototype, "_validate");
    const fresh = makeServer();
    await fresh.start();
    try {
      const one = supertest(`http://127.0.0.1:${fresh.port}`);
      const ask = (type: string) =>
        one.get("/v1/things/a").set("authorization", `Bearer ${KEY}`).set("content-type", type);
      for (let number = 0; number < 40; number += 1) {
        const type = `text/x${number}`;
        expect((await ask(type).set("accept", type)).body).toEqual({ id: "a" });
      }
      // The validator reads parameters in time that grows with the square of their length.
      const long = ";".repeat(15_000);
      expect((await ask(long)).status).toBe(200);
      expect((await ask("application/json ;x").set("accept", long)).status).toBe(200);
      const types = compiled.mock.calls.map(([, , type]) => type.normalize());
      expect(types).toEqual(["application/octet-stream", "application/json"]);
      expect(new Set(kept.mock.results.map(({ value }) => value)).size).toBe(2);
      expect(judged.mock.calls.flatMap(([{ accepts }]) => accepts)).toEqual([]);
    } finally {
      await fresh.stop();
      jest.restoreAllMocks();
    }
  });

  it("says of a packed body that it is packed", async () => {
    const plain = '{"amountAtoken":"1"}';
    const send = (encoding: string, body: Uint8Array<ArrayBuffer>) =>
      fetch(`http://127.0.0.1:${server.port}/v1/things`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "content-encoding": encoding,
          authorization: `Bearer ${KEY}`,
        },
        body,
      });
    for (const body of [new Uint8Array(gzipSync(plain)), Buffer.from(plain)]) {
      const refused = await send("gzip", body);
      expect(refused.status).toBe(415);
      expect(await refused.text()).toContain("Content-Encoding");
    }
    expect((await send("Identity", Buffer.from(plain))).status).toBe(201);
  });

  it("names what is wrong in the errors", async () => {
    const response = await post("/v1/things").send({ amountAtoken: "01" });
    expect(response.body.errors).toEqual([
      {
        path: "/body/amountAtoken",
        message: expect.stringContaining("pattern"),
        errorCode: "pattern.openapi.validation",
      },
    ]);
  });

  it("refuses bytes that are no UTF-8 and JSON that is nested too deep", async () => {
    const latin = await sendRaw(Buffer.from([0x22, 0xff, 0x22]));
    expect(latin).toContain("400 Bad Request");
    const deep = await sendRaw(Buffer.from(`${"[".repeat(400)}${"]".repeat(400)}`));
    expect(deep).toContain("400 Bad Request");
  });

  /** Sends a body byte for byte and gives the answer's head. */
  function sendRaw(body: Buffer): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(server.port, "127.0.0.1");
      socket.once("data", (data) => {
        resolve(data.toString("latin1"));
        socket.destroy();
      });
      socket.once("error", reject);
      socket.write(
        `POST /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
      );
      socket.write(body);
    });
  }

  it("wants one Host header, as HTTP does, and none of clients from before it", async () => {
    const ask = (version: string, hosts: readonly string[]) =>
      new Promise<string>((resolve, reject) => {
        const socket = connect(server.port, "127.0.0.1");
        socket.once("data", (data) => {
          resolve(data.toString("latin1").split("\r\n", 1)[0] ?? "");
          socket.destroy();
        });
        socket.once("error", reject);
        const lines = [...hosts.map((host) => `${host}\r\n`), `Authorization: Bearer ${KEY}\r\n`];
        socket.write(`GET /v1/things/a HTTP/${version}\r\n${lines.join("")}\r\n`);
      });
    expect(await ask("1.1", ["Host: x"])).toContain("200");
    expect(await ask("1.0", [])).toContain("200");
    expect(await ask("1.1", [])).toContain("400");
    expect(await ask("1.1", ["Host: x", "host: y"])).toContain("400");
    expect(await ask("1.0", ["Host: x", "Host: x"])).toContain("400");
  });

  it("refuses what cannot be read under the type that its other refusals have", async () => {
    const headers = { "content-type": "application/problem+json" };
    const problems = makeServer({
      mapError: () => ({ status: 400, body: { code: "X" }, headers }),
    });
    await problems.start();
    try {
      const head = await new Promise<string>((resolve, reject) => {
        const socket = connect(problems.port, "127.0.0.1");
        socket.once("data", (data) => resolve(data.toString("latin1")));
        socket.once("error", reject);
        socket.write("no request\r\n\r\n");
      });
      expect(head).toMatch(/^HTTP\/1\.1 400 .*\r\ncontent-type: application\/problem\+json\r\n/is);
    } finally {
      await problems.stop();
    }
  });

  it("takes bodies in chunks, and in no other transfer coding", async () => {
    const ask = (coding: string) =>
      new Promise<string>((resolve, reject) => {
        const body = JSON.stringify({ amountAtoken: "1" });
        const socket = connect(server.port, "127.0.0.1");
        socket.once("data", (data) => {
          resolve(data.toString("latin1").split("\r\n", 1)[0] ?? "");
          socket.destroy();
        });
        socket.once("error", reject);
        socket.write(
          `POST /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n` +
            `Content-Type: application/json\r\nTransfer-Encoding: ${coding}\r\n\r\n` +
            `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
        );
      });
    expect(await ask("Chunked")).toContain("201");
    expect(await ask("gzip, chunked")).toContain("400");
    expect(await ask("identity, chunked")).toContain("400");
  });

  it("takes a target with scheme and host, as clients send it that take it for a proxy", async () => {
    const ask = (path: string) =>
      new Promise<readonly [number | undefined, string]>((resolve, reject) => {
        const headers = { authorization: `Bearer ${KEY}` };
        const asked = httpRequest({ port: server.port, path, headers }, (response) => {
          let text = "";
          response.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
          response.once("end", () => resolve([response.statusCode, text]));
        });
        asked.once("error", reject);
        asked.end();
      });
    const origin = `http://127.0.0.1:${server.port}`;
    expect(await ask(`${origin}/v1/things?limit=7`)).toEqual([200, '{"limit":7}']);
    expect(await ask("HTTPS://api.example/v1/things/a")).toEqual([200, '{"id":"a"}']);
    expect(await ask(`${origin}/health`)).toEqual([200, '{"status":"ok"}']);
    for (const none of [origin, `${origin}?limit=7`, `${origin}/v1/nothing`, "ftp://a/v1/things"]) {
      expect([none, (await ask(none))[0]]).toEqual([none, 404]);
    }
  });

  it("answers targets that are no path in its own words", async () => {
    const ask = (target: string) =>
      new Promise<string>((resolve, reject) => {
        let text = "";
        const socket = connect(server.port, "127.0.0.1");
        socket.on("data", (data) => (text += data.toString("latin1")));
        socket.once("end", () => resolve(text));
        socket.once("error", reject);
        const lines = ["Host: x", `Authorization: Bearer ${KEY}`, "Connection: close"];
        socket.write(`GET ${target} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      });
    for (const target of ["x://[bad", "ws://[::1]:x/", "//a@[bad#"]) {
      expect([target, await ask(target)]).toEqual([
        target,
        expect.stringMatching(/^HTTP\/1\.1 400 [^]*\r\n\r\n\{"code":"INVALID_REQUEST"/),
      ]);
    }
    for (const target of ["*", "ws://a/v1/things", "//v1/things"]) {
      expect([target, await ask(target)]).toEqual([
        target,
        expect.stringMatching(/^HTTP\/1\.1 404 [^]*\r\n\r\n\{"code":"INVALID_REQUEST"/),
      ]);
    }
  });

  it("stops reading a body without length as soon as it is too large", async () => {
    const status = await new Promise((resolve) => {
      const request = httpRequest(
        {
          port: server.port,
          method: "POST",
          path: "/v1/things",
          headers: { authorization: `Bearer ${KEY}`, "transfer-encoding": "chunked" },
        },
        (response) => {
          response.resume();
          resolve(response.statusCode);
          request.destroy();
        },
      );
      request.on("error", () => undefined);
      request.write("x".repeat(5_000));
    });
    expect(status).toBe(413);
  });

  it("maps errors of handlers, logs the unexpected ones and tells the client nothing", async () => {
    expect((await get("/v1/things/absent")).status).toBe(404);
    logLines.length = 0;
    const response = await get("/v1/things/boom");
    expect(response.status).toBe(500);
    expect(response.text).not.toContain("secret detail");
    expect(logLines.join()).toContain("request failed");
  });

  it("does not let a reply out that breaks the API file, unless it is finished bytes", async () => {
    const broken = await get("/v1/things/broken");
    expect(broken.status).toBe(500);
    expect(broken.body.code).toBe("INVALID_RESPONSE");
    const bytes = await get("/v1/things/bytes");
    expect(bytes.body).toEqual({ finished: true });
    expect(bytes.headers["x-kind"]).toBe("bytes");
  });

  it("answers the probes without a key and tells why it is not ready", async () => {
    expect((await api().get("/health")).status).toBe(200);
    readiness = { ready: false, reason: "the node is behind" };
    const response = await api().get("/ready");
    expect(response.status).toBe(503);
    expect(response.body).toEqual({ ready: false, reason: "the node is behind" });
    readiness = { ready: true };
    expect((await api().get("/ready")).status).toBe(200);
    const page = (await api().get("/metrics")).text;
    expect(page).toContain('route="/v1/things/{id}"');
    expect(page).not.toContain("/v1/nothing");
  });

  it("names the port that is taken", async () => {
    const second = makeServer({ listen: { host: "127.0.0.1", port: server.port } });
    await expect(second.start()).rejects.toMatchObject({
      code: "PORT_TAKEN",
      message: expect.stringContaining(String(server.port)),
    });
    await second.stop();
  });

  it("serves several API files on one port", async () => {
    const both = makeServer({
      moreApis: [
        {
          apiSpecPath: fixture("other-api.yaml"),
          routes: [
            {
              method: "get",
              path: "/v2/others",
              scope: "others:any",
              handler: async ({ query }) => ({ body: { limit: query["limit"] } }),
            },
          ],
        },
      ],
    });
    const call = (path: string) =>
      supertest(both.app).get(path).set("authorization", `Bearer ${KEY}`);
    expect((await call("/v1/things?limit=2")).body).toEqual({ limit: 2 });
    expect((await call("/v2/others?limit=3")).body).toEqual({ limit: 3 });
    expect((await call("/v2/others?limit=99")).status).toBe(400);
    expect((await call("/v3")).status).toBe(404);
  });

  it("takes names of customers in a query as they are written, escaped or not", async () => {
    const apis = ["deposit", "withdrawal"].map((name) => ({
      apiSpecPath: fileURLToPath(new URL(`../../../../openapi/${name}.yaml`, import.meta.url)),
      routes: [
        {
          method: "get" as const,
          path: `/v1/${name}s`,
          scope: "things:any",
          handler: async ({ query }: HttpRequest) => ({ body: query["customerId"] }),
        },
      ],
    }));
    const exchange = makeServer({ ...apis[0], moreApis: apis.slice(1), validateResponses: false });
    await exchange.start();
    try {
      for (const query of ["customerId=shop:7", "customerId=shop%3A7"]) {
        for (const path of ["/v1/deposits", "/v1/withdrawals"]) {
          const answer = await fetch(`http://127.0.0.1:${exchange.port}${path}?${query}`, {
            headers: { authorization: `Bearer ${KEY}` },
          });
          expect([path, query, await answer.json()]).toEqual([path, query, "shop:7"]);
        }
      }
    } finally {
      await exchange.stop();
    }
  });

  it("with keys takes no operation that names no scope: it would be open to every key", () => {
    const forgetful = routes.slice(0, 1).map((one) => ({ ...one, scope: undefined }));
    expect(() => makeServer({ routes: forgetful })).toThrow("get /v1/things names no scope");
    const other = { apiSpecPath: fixture("other-api.yaml"), routes: forgetful };
    expect(() => makeServer({ moreApis: [other] })).toThrow("names no scope");
    expect(() => makeServer({ routes: forgetful, access: undefined })).not.toThrow();
  });

  it("answers from cached bytes only after the key was checked", async () => {
    const cached = makeServer({
      cachedReply: ({ path }) =>
        path === "/v1/things" ? Buffer.from('{"cached":true}') : undefined,
    });
    expect((await supertest(cached.app).get("/v1/things")).status).toBe(401);
    const hit = await supertest(cached.app).get("/v1/things").set("authorization", `Bearer ${KEY}`);
    expect(hit.body).toEqual({ cached: true });
  });

  it("finishes requests in flight when it stops, and takes no new ones", async () => {
    const arrived = createGate();
    const released = createGate();
    const slow = makeServer({
      routes: [
        {
          method: "get",
          path: "/v1/things/{id}",
          scope: "things:any",
          handler: async () => {
            arrived.open();
            await released.opened;
            return { body: { id: "slow" } };
          },
        },
      ],
    });
    await slow.start();
    const { port } = slow;
    const answer = supertest(`http://127.0.0.1:${port}`)
      .get("/v1/things/a")
      .set("authorization", `Bearer ${KEY}`)
      .then((response) => response.status);
    await arrived.opened;
    const stopped = slow.stop();
    try {
      await expect(fetch(`http://127.0.0.1:${port}/health`)).rejects.toThrow();
    } finally {
      released.open();
      await stopped;
    }
    expect(await answer).toBe(200);
  });
});
