import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import { type WebSocket, WebSocketServer } from "ws";
import { type NewHead, subscribeNewHeads } from "../../../rpc-client/ws-subscription.js";

const servers: WebSocketServer[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    for (const client of server.clients) client.terminate();
    server.close();
  }
});

/** A node's socket: acknowledges the subscription, then does what the test says. */
async function startNode(onSubscribed: (socket: WebSocket, connection: number) => void) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  servers.push(server);
  let connections = 0;
  server.on("connection", (socket) => {
    connections += 1;
    const connection = connections;
    socket.on("message", (data) => {
      const { id, method, params } = JSON.parse(Buffer.isBuffer(data) ? data.toString() : "");
      expect([method, params]).toEqual(["eth_subscribe", ["newHeads"]]);
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, result: "0x1" }));
      onSubscribed(socket, connection);
    });
  });
  await new Promise((resolve) => server.once("listening", resolve));
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function head(height: number): string {
  const result = { number: `0x${height.toString(16)}`, hash: `0x${"ab".repeat(32)}` };
  const params = { subscription: "0x1", result };
  return JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params });
}

const settings = (url: string, signal: AbortSignal) => ({
  url,
  signal,
  minDelayMs: 5,
  maxDelayMs: 20,
});

async function take(heads: AsyncIterable<NewHead>, count: number): Promise<number[]> {
  const heights: number[] = [];
  for await (const { height } of heads) {
    heights.push(height);
    if (heights.length === count) break;
  }
  return heights;
}

describe("new heads", () => {
  it("arrive, and go on after the connection was lost, refused or fed with nonsense", async () => {
    const reasons: string[] = [];
    const url = await startNode((socket, connection) => {
      if (connection === 1) return socket.send(head(7), () => socket.terminate());
      if (connection === 2) return socket.send("{");
      if (connection === 3)
        return socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, error: {} }));
      socket.send(head(8));
    });
    const { signal } = new AbortController();
    const heads = subscribeNewHeads({
      ...settings(url, signal),
      onDisconnect: (reason) => reasons.push(reason),
    });
    expect(await take(heads, 2)).toEqual([7, 8]);
    expect(reasons).toEqual(["closed", "malformed message", "malformed message"]);
  });

  it("give a slow reader only the newest", async () => {
    let socket: WebSocket | undefined;
    const url = await startNode((opened) => {
      socket = opened;
      opened.send(head(1));
    });
    const controller = new AbortController();
    const heads = subscribeNewHeads(settings(url, controller.signal));
    expect((await heads.next()).value).toMatchObject({ height: 1 });
    const [client] = servers[0]?.clients ?? [];
    expect(client).toBe(socket);
    await new Promise<void>((resolve) => {
      for (const height of [2, 3, 4]) socket?.send(head(height));
      // The pong comes after everything that was sent before the ping was read.
      socket?.once("pong", () => resolve());
      socket?.ping();
    });
    expect((await heads.next()).value).toMatchObject({ height: 4 });
    controller.abort();
    expect(await heads.next()).toEqual({ done: true, value: undefined });
  });

  it("give up a connection that shows no sign of life", async () => {
    let connections = 0;
    const url = await startNode((socket, connection) => {
      connections = connection;
      // A paused socket neither answers pings nor closes.
      if (connection === 1) socket.pause();
      else socket.send(head(9));
    });
    const { signal } = new AbortController();
    const heads = subscribeNewHeads({ ...settings(url, signal), heartbeatMs: 30 });
    expect(await take(heads, 1)).toEqual([9]);
    expect(connections).toBeGreaterThan(1);
  });

  it("end quietly by the signal, also while nobody listens at the address", async () => {
    const controller = new AbortController();
    const attempts: string[] = [];
    const heads = subscribeNewHeads({
      ...settings("ws://127.0.0.1:9", controller.signal),
      onDisconnect: (reason) => {
        attempts.push(reason);
        if (attempts.length === 3) controller.abort();
      },
    });
    expect(await take(heads, 1)).toEqual([]);
    expect(attempts).toHaveLength(3);
  });
});
