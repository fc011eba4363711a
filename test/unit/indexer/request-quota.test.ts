/** Requests of one client in a minute: what is counted, and what each answer says of it. */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "@jest/globals";
import { RequestQuota } from "../../../indexer/api/request-quota.js";
import { createIndexerServer } from "../../../indexer/api/server.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { contextWithoutNode } from "../../helpers/indexer/read-context.js";
import { silentLog } from "../../helpers/services/ledger.js";

describe("the limit of requests", () => {
  it("counts a network once, and spares this machine", () => {
    let nowMs = 1_000;
    const limit = new RequestQuota(2, { monotonicMs: () => nowMs });
    const ask = (remoteAddress: string) => {
      const headers: Record<string, unknown> = {};
      const setHeader = (name: string, value: unknown) => Object.assign(headers, { [name]: value });
      limit.pace({ socket: { remoteAddress } } as IncomingMessage, { setHeader } as never);
      return headers;
    };
    nowMs = 61_000;
    expect(ask("2001:db8::1")).toEqual({
      "ratelimit-limit": 2,
      "ratelimit-remaining": 1,
      "ratelimit-reset": 60,
    });
    nowMs += 20_500;
    expect(ask("2001:db8::2")).toMatchObject({
      "ratelimit-remaining": 0,
      "ratelimit-reset": 40,
    });
    expect(() => ask("2001:db8::3")).toThrow(
      expect.objectContaining({
        code: "RATE_LIMITED",
        details: { retryAfterSeconds: 40, limit: 2 },
      }),
    );
    expect(ask("10.0.0.1")).toMatchObject({ "ratelimit-remaining": 1 });
    for (let count = 0; count < 5; count++) expect(ask("::ffff:127.0.0.1")).toEqual({});
    nowMs += 40_000;
    expect(ask("2001:db8::3")).toMatchObject({ "ratelimit-remaining": 1 });
  });

  it("lets any number of requests through where none is set, and sets no header", () => {
    const limit = new RequestQuota(0, { monotonicMs: () => 0 });
    const named: string[] = [];
    const response = { setHeader: (name: string) => named.push(name) };
    for (let count = 0; count < 1_000; count++) {
      limit.pace({ socket: { remoteAddress: "10.0.0.1" } } as IncomingMessage, response as never);
    }
    expect(named).toEqual([]);
  });

  it("is told with every answer, and counts what the validator refuses", async () => {
    const api = { listen: { host: "", port: 0 }, "cors-origins": [], "requests-per-minute": 3 };
    const parts = {
      context: contextWithoutNode({ query: () => Promise.resolve([]) }, 7),
      config: { api, indexer: { "max-lag-blocks": 5 } },
      log: silentLog,
      metrics: createMetrics({ processMetrics: false }),
    };
    const { app } = createIndexerServer(parts as never);
    let remoteAddress = "203.0.113.7";
    const server = createServer((request, response) => {
      Object.defineProperty(request.socket, "remoteAddress", { value: remoteAddress });
      app(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const ask = async (path: string) => {
      const headers = { connection: "close" };
      const { status, headers: told } = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
      return [status, told.get("ratelimit-remaining"), told.get("ratelimit-limit")];
    };
    try {
      expect(await ask("/health")).toEqual([200, null, null]);
      expect(await ask("/v1/blocks?limit=0")).toEqual([422, "2", "3"]);
      expect(await ask("/v1/nothing")).toEqual([404, "1", "3"]);
      expect(await ask("/v1/openapi.json")).toEqual([200, "0", "3"]);
      expect(await ask("/v1/openapi.json")).toEqual([429, "0", "3"]);
      expect(await ask("/health")).toEqual([200, null, null]);
      remoteAddress = "127.0.0.1";
      expect(await ask("/v1/nothing")).toEqual([404, null, null]);
    } finally {
      server.close();
    }
  });
});
