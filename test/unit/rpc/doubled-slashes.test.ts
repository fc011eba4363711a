/** Base URLs that end with a slash, before paths that begin with one: Go's routers clean these. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { WebSocket } from "ws";
import { createClientMemory } from "../../../node/rpc/client-memory.js";
import { type CometServerOptions, startCometServer } from "../../../node/rpc/comet/server.js";
import { QueryRegistry } from "../../../node/rpc/cosmos/registry.js";
import type { RpcServer } from "../../../node/rpc/http-listener.js";
import { startRestServer } from "../../../node/rpc/rest/server.js";
import { loadDescriptors } from "../../../runtime/files/descriptor-set.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";

const listen = { host: "127.0.0.1", port: 0 };
const log = createLogger({ component: "test", level: "silent" });

let comet: RpcServer;
let rest: RpcServer;

beforeAll(async () => {
  // Of `health` nothing else is needed.
  comet = await startCometServer({ listen, log } as unknown as CometServerOptions);
  const handlers = Object.fromEntries(
    ["bank.v1beta1.Query/Params", "tx.v1beta1.Service/GetTxsEvent"]
      .concat("tx.v1beta1.Service/BroadcastTx")
      .map((path) => [`/cosmos.${path}`, () => ({})]),
  );
  rest = await startRestServer({
    listen,
    queries: new QueryRegistry(loadDescriptors(), handlers, () => 7, 20_000),
    allowedOrigins: [],
    isSwaggerServed: true,
    maxConnections: 10,
    maxBodyBytes: 100_000,
    requestsPerSecond: 0,
    memory: createClientMemory(systemClock),
    clock: systemClock,
    log,
  });
});

afterAll(async () => {
  await comet.stop();
  await rest.stop();
});

async function statusOf(server: RpcServer, path: string, method: string): Promise<number> {
  const url = `http://127.0.0.1:${server.address.port}${path}`;
  const body = method === "POST" ? "{}" : null;
  return (await fetch(url, { method, body, redirect: "error" })).status;
}

it("are one slash for whoever reads", async () => {
  const params = "/cosmos/bank/v1beta1/params";
  for (const method of ["GET", "HEAD"]) {
    for (const path of ["/health", "//health", "///health?x=//y"]) {
      expect([method, path, await statusOf(comet, path, method)]).toEqual([method, path, 200]);
    }
    for (const path of [params, `/${params}`, `//${params}`, "/cosmos//bank/v1beta1/params"]) {
      expect([method, path, await statusOf(rest, path, method)]).toEqual([method, path, 200]);
    }
    expect(await statusOf(rest, "//swagger", method)).toBe(200);
    // A slash that is written out is part of a name.
    expect(await statusOf(rest, "/%2Fcosmos/bank/v1beta1/params", method)).toBe(501);
    expect(await statusOf(comet, "//nothing", method)).toBe(404);
  }
});

it("are what they are for whoever sends: a redirected request would lose its body", async () => {
  expect(await statusOf(comet, "//health", "POST")).toBe(404);
  expect(await statusOf(rest, "//cosmos/tx/v1beta1/txs", "POST")).toBe(501);
});

it("are one slash where events are subscribed to", async () => {
  const socket = new WebSocket(`ws://127.0.0.1:${comet.address.port}//websocket`);
  const said = await new Promise((resolve) => socket.once("error", resolve));
  // A node without a chain has no events; another path is not found.
  expect(String(said)).toContain("503");
});
