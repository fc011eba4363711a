/** Requests that the server takes and refuses: keys, queries, paths, targets and hosts. */
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";
import supertest from "supertest";
import type { HttpRequest } from "../../../../../runtime/http/http-route.js";
import { KEY, makeServer, serverForTests } from "./api-server.js";

const own = serverForTests();
const { api, get, post } = own;

describe("HTTP server", () => {
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

  it("wants one Host header, as HTTP does, and none of clients from before it", async () => {
    const ask = (version: string, hosts: readonly string[]) =>
      new Promise<string>((resolve, reject) => {
        const socket = connect(own.server.port, "127.0.0.1");
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

  it("takes a target with scheme and host, as clients send it that take it for a proxy", async () => {
    const ask = (path: string) =>
      new Promise<readonly [number | undefined, string]>((resolve, reject) => {
        const headers = { authorization: `Bearer ${KEY}` };
        const asked = httpRequest({ port: own.server.port, path, headers }, (response) => {
          let text = "";
          response.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
          response.once("end", () => resolve([response.statusCode, text]));
        });
        asked.once("error", reject);
        asked.end();
      });
    const origin = `http://127.0.0.1:${own.server.port}`;
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
        const socket = connect(own.server.port, "127.0.0.1");
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

  it("takes names of customers in a query as they are written, escaped or not", async () => {
    const apis = ["deposit", "withdrawal"].map((name) => ({
      apiSpecPath: fileURLToPath(new URL(`../../../../../openapi/${name}.yaml`, import.meta.url)),
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
});
