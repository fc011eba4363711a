/**
 * What the server says, and to whom: replies of handlers, faults, probes, cached bytes; its start and
 * end.
 */
import { describe, expect, it } from "@jest/globals";
import supertest from "supertest";
import { createGate } from "../../../../helpers/gate.js";
import { fixture, KEY, logLines, makeServer, routes, serverForTests, told } from "./api-server.js";

const own = serverForTests();
const { api, get } = own;

describe("HTTP server", () => {
  it("sends no etag and no x-powered-by", async () => {
    const response = await get("/v1/things/a");
    expect(response.body).toEqual({ id: "a" });
    expect(response.headers).not.toHaveProperty("etag");
    expect(response.headers).not.toHaveProperty("x-powered-by");
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
    told.readiness = { ready: false, reason: "the node is behind" };
    const response = await api().get("/ready");
    expect(response.status).toBe(503);
    expect(response.body).toEqual({ ready: false, reason: "the node is behind" });
    told.readiness = { ready: true };
    expect((await api().get("/ready")).status).toBe(200);
    const page = (await api().get("/metrics")).text;
    expect(page).toContain('route="/v1/things/{id}"');
    expect(page).not.toContain("/v1/nothing");
  });

  it("names the port that is taken", async () => {
    const second = makeServer({ listen: { host: "127.0.0.1", port: own.server.port } });
    await expect(second.start()).rejects.toMatchObject({
      code: "PORT_TAKEN",
      message: expect.stringContaining(String(own.server.port)),
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
