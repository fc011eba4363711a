/** The proxies of the fault scenarios do what they say; a fault that never happens shows nothing. */
import { createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { createConnection } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createJsonRpcClient, type JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { type FakeNode, startFakeNode } from "../../helpers/chains/fake-node.js";
import { HttpProxy } from "../../helpers/faults/proxy/http-proxy.js";
import {
  always,
  BALANCER,
  BROKEN_BODIES,
  changing,
  first,
  inTurn,
  on,
  replying,
  sometimes,
  stale,
} from "../../helpers/faults/proxy/rules.js";
import { TcpProxy } from "../../helpers/faults/proxy/tcp-proxy.js";
import { createRandom } from "../../helpers/random.js";
import { until } from "../../helpers/until.js";

const { signal } = new AbortController();

describe("the proxy before a node", () => {
  let node: FakeNode;
  let proxy: HttpProxy;
  let rpc: JsonRpcClient;

  const ask = (method: string, ...params: unknown[]) => rpc.request(method, params, { signal });

  beforeEach(async () => {
    node = await startFakeNode({
      eth_blockNumber: () => "0x14",
      eth_getBalance: ([, at]) => at,
      eth_getTransactionCount: ([, at]) => at,
      eth_getTransactionReceipt: ([hash]) => ({ hash, blockNumber: "0x12" }),
      eth_getBlockByNumber: ([at]) => ({ number: at }),
      eth_sendRawTransaction: () => "0xnode",
    });
    proxy = await HttpProxy.start(node.url, createRandom(1));
    rpc = createJsonRpcClient({ url: proxy.url, timeoutMs: 60_000 });
  });
  afterEach(async () => {
    rpc.close();
    await proxy.close();
    await node.close();
  });

  it("passes everything on without a rule, and again after it was healed", async () => {
    expect(await ask("eth_blockNumber")).toBe("0x14");
    proxy.rules = [always({ kind: "reset before" })];
    await expect(ask("eth_blockNumber")).rejects.toMatchObject({ code: "NODE_UNREACHABLE" });
    proxy.heal();
    expect(await ask("eth_blockNumber")).toBe("0x14");
    expect([...proxy.methods]).toEqual(["eth_blockNumber"]);
  });

  it.each([
    ["reset before", "NODE_UNREACHABLE", 0],
    ["reset after", "NODE_UNREACHABLE", 1],
    ["hang before", "NODE_TIMEOUT", 0],
    ["hang after", "NODE_TIMEOUT", 1],
  ] as const)("by %s gives %s, and the node has seen it %s times", async (kind, code, seen) => {
    proxy.rules = [on(["eth_sendRawTransaction"], first(1, always({ kind })))];
    // Only who is never answered is to be given up soon.
    const timeoutMs = code === "NODE_TIMEOUT" ? 1_000 : 60_000;
    const once = createJsonRpcClient({ url: proxy.url, timeoutMs });
    const asked = once.request("eth_sendRawTransaction", ["0x"], { signal });
    await expect(asked).rejects.toMatchObject({ code });
    once.close();
    await until(() => proxy.hitsOf(kind) === 1 && node.calls.length === seen, {
      timeoutMs: 10_000,
    });
    expect(await ask("eth_sendRawTransaction", "0x")).toBe("0xnode");
  });

  it("gives bodies and codes that no client may believe, and batches in another order", async () => {
    for (const fault of BALANCER) {
      proxy.rules = [always(fault)];
      await expect(ask("eth_blockNumber")).rejects.toMatchObject({ code: "NODE_HTTP_STATUS" });
    }
    for (const fault of BROKEN_BODIES.filter((each) => each.kind === "body")) {
      if (fault.kind === "body" && fault.name === "reordered") continue;
      proxy.rules = [always(fault)];
      await expect(ask("eth_blockNumber")).rejects.toMatchObject({ code: "BAD_ANSWER" });
    }
    proxy.rules = BROKEN_BODIES.filter(
      (fault) => "name" in fault && fault.name === "reordered",
    ).map(always);
    const calls = ["0x1", "0x2"].map((at) => ({ method: "eth_getBalance", params: ["0x", at] }));
    expect(await rpc.batch(calls, { signal })).toEqual([
      { ok: true, result: "0x1" },
      { ok: true, result: "0x2" },
    ]);
    expect(proxy.hitsOf("reordered")).toBe(1);
  });

  it("shows a node as it was some blocks ago, all of one moment", async () => {
    proxy.rules = [stale({ behind: 4 })];
    expect(await ask("eth_blockNumber")).toBe("0x10");
    expect(await ask("eth_getBalance", "0xa", "latest")).toBe("0x10");
    expect(await ask("eth_getTransactionCount", "0xa", "pending")).toBe("0x10");
    expect(await ask("eth_getBalance", "0xa", "0xf")).toBe("0xf");
    await expect(ask("eth_getBalance", "0xa", "0x11")).rejects.toThrow("header not found");
    expect(await ask("eth_getTransactionReceipt", "0xb")).toBeNull();
    expect(await ask("eth_getBlockByNumber", "0x11", false)).toBeNull();
    proxy.rules = [stale({ behind: 2 })];
    expect(await ask("eth_getTransactionReceipt", "0xb")).toMatchObject({ blockNumber: "0x12" });
  });

  it("answers, changes and takes turns, call by call of a batch", async () => {
    proxy.rules = [
      replying("other chain", "eth_chainId", () => ({ result: "0x1" })),
      changing("later", "eth_blockNumber", () => "0xff"),
    ];
    const calls = ["eth_chainId", "eth_blockNumber"].map((method) => ({ method, params: [] }));
    expect(await rpc.batch(calls, { signal })).toEqual([
      { ok: true, result: "0x1" },
      { ok: true, result: "0xff" },
    ]);
    proxy.rules = [inTurn(undefined, always({ kind: "status", status: 503, text: "" }))];
    expect(await ask("eth_blockNumber")).toBe("0x14");
    await expect(ask("eth_blockNumber")).rejects.toMatchObject({ code: "NODE_HTTP_STATUS" });
  });

  it("decides by its seed alone", async () => {
    const decide = async () => {
      const other = await HttpProxy.start(node.url, createRandom(7));
      other.rules = [sometimes(0.5, { kind: "status", status: 503, text: "" })];
      const statuses: number[] = [];
      for (let round = 0; round < 20; round += 1) {
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_blockNumber" });
        statuses.push((await fetch(other.url, { method: "POST", body })).status);
      }
      await other.close();
      return statuses;
    };
    const decided = await decide();
    expect(new Set(decided)).toEqual(new Set([200, 503]));
    expect(await decide()).toEqual(decided);
  });
});

describe("the proxy before a server", () => {
  let server: Server;
  let proxy: TcpProxy;
  let heard: string;
  const sockets = new Set<Socket>();

  beforeEach(async () => {
    heard = "";
    server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("data", (chunk: Buffer) => {
        heard += chunk.toString();
        socket.write("done\0");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    proxy = await TcpProxy.start({ host: "127.0.0.1", port });
  });
  afterEach(async () => {
    await proxy.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  async function dial() {
    const socket = createConnection({ host: "127.0.0.1", port: proxy.port });
    const state = { said: "", isOver: false, socket };
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => (state.said += chunk.toString()));
    socket.on("close", () => (state.isOver = true));
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", () => resolve());
      socket.once("error", (error) => {
        // A reset right behind the connection: who dials may or may not have seen it open.
        if (Reflect.get(error, "code") === "ECONNRESET") resolve();
        else reject(error);
      });
    });
    return state;
  }

  const soon = (isTrue: () => boolean) => until(isTrue, { timeoutMs: 10_000 });

  it("cuts a commit before the server has it, and after it without its answer", async () => {
    proxy.cutCommits(() => "before");
    const before = await dial();
    before.socket.write("COMMIT\0");
    await soon(() => before.isOver);
    expect(heard).toBe("");
    proxy.cutCommits(() => "after");
    const after = await dial();
    after.socket.write("COMMIT\0");
    await soon(() => after.isOver);
    expect([heard, after.said]).toEqual(["COMMIT\0", ""]);
    expect([...proxy.hits.keys()]).toEqual(["cut before the commit", "cut after the commit"]);
  });

  it("holds one direction and delivers it late, also of one who has left", async () => {
    const client = await dial();
    proxy.hold("down");
    client.socket.write("a");
    await soon(() => proxy.hits.has("held down"));
    expect([heard, client.said]).toEqual(["a", ""]);
    proxy.hold("up");
    client.socket.write("b");
    await soon(() => proxy.hits.has("held up"));
    client.socket.destroy();
    await soon(() => client.isOver);
    expect(heard).toBe("a");
    proxy.release();
    await soon(() => heard === "ab");
  });

  it("refuses, resets, limits, and takes connections again", async () => {
    const one = await dial();
    proxy.limit(1);
    const two = await dial();
    await soon(() => two.isOver);
    expect(one.isOver).toBe(false);
    await proxy.refuse();
    await soon(() => one.isOver);
    await expect(dial()).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await proxy.heal();
    const three = await dial();
    three.socket.write("x");
    await soon(() => three.said === "done\0");
  });
});
