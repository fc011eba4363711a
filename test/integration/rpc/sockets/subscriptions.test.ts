/** 8546 on live sockets: every method, subscriptions without gaps, and slow or silent clients. */
import { describe, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import { connect, Server, Socket } from "node:net";
import { Transaction } from "ethers";
import { WebSocket } from "ws";
import { parseAddress } from "../../../../chain/address.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { RpcFault } from "../../../../node/rpc/evm/errors.js";
import { SocketConnection } from "../../../../node/rpc/evm/sockets/socket-connection.js";
import { until } from "../../../helpers/until.js";
import { ALICE, BOB, createTestNode, signLegacy } from "../../../unit/rpc/evm/fixture.js";
import { cleanups, startNode } from "./socket-node.js";

interface Message {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: { code: number; message: string };
  readonly params?: { subscription: string; result: never };
}

function fail(text: string): never {
  throw new Error(text);
}

function refuse(text: string): never {
  throw new RpcFault("SERVER_ERROR", text);
}

/** A node with few places for clients, and its server as the system brings it connections. */
async function startNodeSeen() {
  const listening = jest.spyOn(Server.prototype, "listen");
  const places = 20;
  const { url } = await startNode({ webSocketConnections: places });
  const [server] = listening.mock.contexts as Server[];
  listening.mockRestore();
  return { url, server: server ?? fail("it does not listen"), places };
}

/** A client that keeps what it gets and lets a test wait for it. */
async function openClient(url: string) {
  const socket = new WebSocket(url);
  cleanups.push(() => socket.terminate());
  await once(socket, "open");
  const messages: Message[] = [];
  socket.on("message", (data: Buffer) => {
    messages.push(JSON.parse(data.toString()));
  });
  const take = async (wanted: (message: Message) => boolean): Promise<Message> => {
    for (;;) {
      const index = messages.findIndex(wanted);
      if (index >= 0) return messages.splice(index, 1)[0] ?? {};
      await once(socket, "message");
    }
  };
  let id = 0;
  const ask = async (method: string, ...params: unknown[]): Promise<Message> => {
    id += 1;
    const own = id;
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: own, method, params }));
    return take((message) => message.id === own);
  };
  const next = async (subscription: unknown): Promise<Record<string, unknown>> =>
    (await take((message) => message.params?.subscription === subscription)).params?.result ?? {};
  return { socket, messages, ask, next };
}

describe("requests over WebSocket", () => {
  it("serves the HTTP methods and batches in process, ids as they came", async () => {
    const { url, calls } = await startNode();
    const client = await openClient(url);
    expect((await client.ask("eth_chainId")).result).toBe("0x1b1c");
    await client.ask("eth_estimateGas", { to: BOB.address });
    expect(calls.last).toMatchObject({ options: { client: "127.0.0.1" } });
    expect((await client.ask("eth_getBlockByNumber", "0x0", true)).result).toMatchObject({
      number: "0x0",
    });
    client.socket.send('[{"jsonrpc":"2.0","id":"a","method":"eth_blockNumber"}]');
    const [batch] = await once(client.socket, "message");
    expect(JSON.parse(String(batch))).toEqual([{ jsonrpc: "2.0", id: "a", result: "0x0" }]);
    client.socket.send("{");
    const [broken] = await once(client.socket, "message");
    expect(JSON.parse(String(broken))).toMatchObject({ id: null, error: { code: -32700 } });
  });

  it("admits programs and listed origins, and bounds the connections", async () => {
    const { url } = await startNode({ webSocketConnections: 1 });
    expect(await attempt(url, "https://evil.example")).toContain("403");
    const socket = new WebSocket(url, { origin: "https://wallet.example" });
    await once(socket, "open");
    expect(await attempt(url, undefined)).toContain("503");
    socket.terminate();
  });

  it("gives one address half of the places, then each a tenth, and this machine all", async () => {
    const { url, server, places } = await startNodeSeen();
    let remoteAddress = "";
    server.prependListener("connection", (socket: Socket) => {
      Object.defineProperty(socket, "remoteAddress", { value: remoteAddress });
    });
    const openFrom = async (address: string) => {
      remoteAddress = address;
      const clients = [];
      for (;;) {
        const client = await openClient(url).catch((error: Error) => error);
        if (!(client instanceof Error)) clients.push(client);
        else if (client.message.includes("503")) return clients;
        else throw client;
      }
    };
    const [first, ...strangers] = await openFrom("203.0.113.1");
    expect(strangers).toHaveLength(places / 2 - 1);
    expect(await openFrom("203.0.113.2")).toHaveLength(places / 10);
    expect(await openFrom("127.0.0.1")).toHaveLength(places / 2 - places / 10);
    expect(await openFrom("203.0.113.3")).toHaveLength(0);
    first?.socket.terminate();
    await until(async () => (await openFrom("203.0.113.3")).length === 1, {
      timeoutMs: 10_000,
    });
  });

  it("admits programs that send its own origin, and pages that ws-origins names", async () => {
    const { url } = await startNode();
    expect(await attempt(url, url.replace("ws:", "http:"))).toBe("open");
    expect(await attempt(url, "http://localhost:5173")).toBe("open");
    expect(await attempt(url, "http://127.0.0.1:5173")).toContain("403");
  });
});

/** What becomes of a WebSocket that a page of the origin, or a program, opens. */
function attempt(url: string, origin: string | undefined): Promise<string> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url, origin === undefined ? {} : { origin });
    socket.once("open", () => {
      socket.terminate();
      resolve("open");
    });
    socket.once("error", (error) => resolve(error.message));
  });
}

describe("subscriptions", () => {
  it("pushes new heads equal to the served header, until unsubscribed", async () => {
    const { url, chain, call } = await startNode();
    const client = await openClient(url);
    const { result: id } = await client.ask("eth_subscribe", "newHeads");
    chain.add([]);
    expect(await client.next(id)).toEqual(await call("eth_getHeaderByNumber", "0x1"));
    expect((await client.ask("eth_unsubscribe", id)).result).toBe(true);
    expect((await client.ask("eth_unsubscribe", id)).error).toEqual({
      code: -32000,
      message: "subscription not found",
    });
    chain.add([]);
    await client.ask("eth_chainId");
    expect(client.messages).toEqual([]);
  });

  it("pushes logs that match, and pending hashes or whole transactions", async () => {
    const { url, chain, bus } = await startNode();
    const client = await openClient(url);
    const address = parseAddress(`0x${"aa".repeat(20)}`);
    const topic = parseHash32(`0x${"1".repeat(64)}`);
    const { result: logs } = await client.ask("eth_subscribe", "logs", {
      address,
      topics: [topic],
    });
    const { result: hashes } = await client.ask("eth_subscribe", "newPendingTransactions");
    const { result: full } = await client.ask("eth_subscribe", "newPendingTransactions", true);
    const raw = await signLegacy(ALICE, { nonce: 0, to: BOB.address });
    const log = { address, topics: [topic], data: new Uint8Array(0) };
    const { block } = chain.add([{ raw, logs: [{ ...log, topics: [] }, log] }]);
    expect(await client.next(logs)).toMatchObject({
      address,
      topics: [topic],
      logIndex: "0x1",
      removed: false,
    });
    bus.emit("pendingTransactions", block.transactions);
    expect(await client.next(hashes)).toBe(block.transactions[0]?.tx.hash);
    expect(await client.next(full)).toMatchObject({
      hash: block.transactions[0]?.tx.hash,
      blockHash: null,
    });
  });

  it("pushes a block's receipts: those that are waited for, or all, as one list", async () => {
    const { url, chain } = await startNode();
    const client = await openClient(url);
    const raws = await Promise.all(
      [0, 1, 2, 3].map((nonce) => signLegacy(ALICE, { nonce, to: BOB.address })),
    );
    const hashes = raws.map((raw) => Transaction.from(raw).hash);
    const [first, second, third, fourth] = raws.map((raw) => ({ raw }));
    if (!first || !second || !third || !fourth) throw new Error("no transactions");
    const subscribe = async (...options: unknown[]) =>
      (await client.ask("eth_subscribe", "transactionReceipts", ...options)).result;
    const all = await subscribe();
    const some = await subscribe({ transactionHashes: [hashes[2], hashes[3], hashes[0]] });
    chain.add([]);
    chain.add([first, second]);
    chain.add([third, fourth]);
    const listed = async (id: unknown) =>
      Object.values(await client.next(id)).map((receipt) =>
        typeof receipt === "object" && receipt !== null && "transactionHash" in receipt
          ? receipt.transactionHash
          : undefined,
      );
    expect(await listed(all)).toEqual(hashes.slice(0, 2));
    expect(await listed(all)).toEqual(hashes.slice(2));
    expect(await listed(some)).toEqual([hashes[0]]);
    expect(await listed(some)).toEqual([hashes[2], hashes[3]]);
    const late = await subscribe({ transactionHashes: [hashes[1]], fromBlock: "0x0" });
    const [receipt] = Object.values(await client.next(late));
    expect(receipt).toEqual((await client.ask("eth_getTransactionReceipt", hashes[1])).result);
  });

  it("pushes receipts of the newest block to who comes behind others that wait for some", async () => {
    const { url, chain } = await startNode();
    const client = await openClient(url);
    const raws = await Promise.all([0, 1].map((nonce) => signLegacy(ALICE, { nonce })));
    const hashes = raws.map((raw) => Transaction.from(raw).hash);
    const subscribe = async (options: object) =>
      (await client.ask("eth_subscribe", "transactionReceipts", options)).result;
    const early = await subscribe({ transactionHashes: [hashes[0]] });
    chain.add(raws.map((raw) => ({ raw })));
    expect(Object.values(await client.next(early))).toMatchObject([{ transactionHash: hashes[0] }]);
    const late = await subscribe({ transactionHashes: [hashes[1]], fromBlock: "0x1" });
    // What was subscribed later is sent the block later.
    const { result: heads } = await client.ask("eth_subscribe", "newHeads", { fromBlock: "0x1" });
    await client.next(heads);
    const told = client.messages.filter(({ params }) => params?.subscription === late);
    expect(told).toMatchObject([{ params: { result: [{ transactionHash: hashes[1] }] } }]);
  });

  it("bounds the transactions that are waited for", async () => {
    const { url } = await startNode();
    const client = await openClient(url);
    const transactionHashes = Array.from(
      { length: 201 },
      (_, index) => `0x${index.toString(16).padStart(64, "0")}`,
    );
    const refused = await client.ask("eth_subscribe", "transactionReceipts", { transactionHashes });
    expect(refused.error).toEqual({
      code: -32000,
      message:
        "exceed max number of transaction hashes allowed per transactionReceipts subscription",
    });
  });

  it("replays from a past block and goes on live without a gap or a repeat", async () => {
    const { url, chain } = await startNode();
    for (let height = 1; height <= 20; height++) chain.add([]);
    const client = await openClient(url);
    const { result: id } = await client.ask("eth_subscribe", "newHeads", { fromBlock: "0x5" });
    for (let height = 21; height <= 30; height++) {
      chain.add([]);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    const heights: number[] = [];
    for (let count = 5; count <= 30; count++)
      heights.push(Number((await client.next(id))["number"]));
    expect(heights).toEqual(Array.from({ length: 26 }, (_, index) => index + 5));
  });

  it("sends no log above toBlock, of the past or live", async () => {
    const { url, chain } = await startNode();
    const address = parseAddress(`0x${"aa".repeat(20)}`);
    const log = { address, topics: [], data: new Uint8Array(0) };
    const add = async (nonce: number) => {
      chain.add([{ raw: await signLegacy(ALICE, { nonce, to: BOB.address }), logs: [log] }]);
    };
    for (const nonce of [0, 1, 2]) await add(nonce);
    const client = await openClient(url);
    const subscribe = async (filter: object) =>
      (await client.ask("eth_subscribe", "logs", filter)).result;
    const past = await subscribe({ fromBlock: "0x1", toBlock: "0x2" });
    const both = await subscribe({ fromBlock: "0x2", toBlock: "0x4" });
    const all = await subscribe({ fromBlock: "0x1" });
    for (const nonce of [3, 4, 5]) await add(nonce);
    const heights = async (id: unknown, count: number) => {
      const found = [];
      while (found.length < count) found.push(Number((await client.next(id))["blockNumber"]));
      return found;
    };
    expect(await heights(all, 6)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await heights(past, 2)).toEqual([1, 2]);
    expect(await heights(both, 3)).toEqual([2, 3, 4]);
    expect(client.messages).toEqual([]);
  });

  it("tells clients that name the first block where they mean none of new logs alone", async () => {
    const { url, chain } = await startNode({ logBlocks: 4 });
    const address = parseAddress(`0x${"aa".repeat(20)}`);
    const log = { address, topics: [], data: new Uint8Array(0) };
    const add = async (nonce: number) => {
      chain.add([{ raw: await signLegacy(ALICE, { nonce, to: BOB.address }), logs: [log] }]);
    };
    for (const nonce of [0, 1, 2]) await add(nonce);
    const client = await openClient(url);
    // What go-ethereum's SubscribeFilterLogs and `cast logs --subscribe` send where no block is named.
    const ofGo = { address: null, topics: null, fromBlock: "0x0", toBlock: "latest" };
    const ofCast = { fromBlock: "earliest", toBlock: "latest", topics: [] };
    const ask = async (filter: object) =>
      (await client.ask("eth_subscribe", "logs", filter)).result;
    const first = async (id: unknown) => Number((await client.next(id))["blockNumber"]);
    const all = await ask({ fromBlock: "0x1" });
    expect([await first(all), await first(all), await first(all)]).toEqual([1, 2, 3]);
    const short = [await ask(ofGo), await ask(ofCast)];
    await add(3);
    expect(await Promise.all(short.map(first))).toEqual([4, 4]);
    const long = [await ask(ofGo), await ask(ofCast)];
    expect(long).toEqual([expect.any(String), expect.any(String)]);
    await add(4);
    expect(await Promise.all(long.map(first))).toEqual([5, 5]);
  });

  it("refuses a range of logs in which nothing can ever be", async () => {
    const { url, chain } = await startNode();
    for (let height = 1; height <= 5; height++) chain.add([]);
    const client = await openClient(url);
    const refusal = { code: -32602, message: "invalid block range params" };
    for (const range of [{ fromBlock: "0x5", toBlock: "0x2" }, { toBlock: "0x4" }]) {
      expect((await client.ask("eth_subscribe", "logs", range)).error).toEqual(refusal);
      expect((await client.ask("eth_newFilter", range)).error).toEqual(refusal);
    }
    for (const range of [
      { fromBlock: "0x9", toBlock: "0x9" },
      { toBlock: "0x5" },
      { toBlock: "latest" },
    ]) {
      expect((await client.ask("eth_subscribe", "logs", range)).error).toBeUndefined();
      expect((await client.ask("eth_newFilter", range)).error).toBeUndefined();
    }
  });

  it("tells when syncing starts and ends", async () => {
    const { url, chain, state } = await startNode();
    const client = await openClient(url);
    const { result: id } = await client.ask("eth_subscribe", "syncing");
    state.catchingUp = true;
    chain.add([]);
    expect(await client.next(id)).toBe(true);
    state.catchingUp = false;
    chain.add([]);
    expect(await client.next(id)).toBe(false);
  });

  it("bounds subscriptions of a connection and refuses unknown ones", async () => {
    const { url } = await startNode({ subscriptionsPerConnection: 1 });
    const client = await openClient(url);
    expect((await client.ask("eth_subscribe", "newMoon")).error).toEqual({
      code: -32601,
      message: 'no "newMoon" subscription in eth namespace',
    });
    expect((await client.ask("eth_subscribe", "newHeads")).error).toBeUndefined();
    expect((await client.ask("eth_subscribe", "newHeads")).error).toEqual({
      code: -32005,
      message: "too many subscriptions",
    });
  });

  it("refuses eth_subscribe over HTTP", async () => {
    const { ask } = createTestNode();
    expect((await ask("eth_subscribe", "newHeads")).error).toEqual({
      code: -32601,
      message: "notifications not supported",
    });
  });

  it("drops a subscriber that does not read, with a close code, and keeps the others", async () => {
    const { url, chain, bus } = await startNode({ backlogBytes: 1_000_000 });
    const raw = await signLegacy(ALICE, { nonce: 0, data: `0x${"ab".repeat(100_000)}` });
    const { transactions } = chain.add([{ raw }]).block;
    const quick = await openClient(url);
    const { result: id } = await quick.ask("eth_subscribe", "newPendingTransactions", true);
    const slow = await openClient(url);
    await slow.ask("eth_subscribe", "newPendingTransactions", true);
    slow.socket.pause();
    const closed = once(slow.socket, "close");
    const dropped = jest.spyOn(SocketConnection.prototype, "tooSlow");
    const tell = async () => {
      bus.emit("pendingTransactions", transactions);
      await quick.next(id);
    };
    // 200 messages of 200 KB are more than the kernel buffers for a client that does not read.
    for (let count = 0; count < 200 && dropped.mock.calls.length === 0; count++) await tell();
    // It reads again at once: after some seconds it would not even be told why.
    slow.socket.resume();
    const [code, reason] = await closed;
    expect([code, String(reason)]).toEqual([1013, "subscription backlog exceeded"]);
    for (let count = 0; count < 10; count++) await tell();
    expect(dropped).toHaveBeenCalledTimes(1);
    dropped.mockRestore();
    expect(quick.socket.readyState).toBe(WebSocket.OPEN);
  });

  it("closes the connection of a subscription that cannot go on, and says why", async () => {
    const { url, chain } = await startNode();
    const { oldest } = chain;
    const outline = chain.outline.bind(chain);
    const spoiled = {
      missing: { outline: () => undefined, oldest },
      broken: { outline: () => fail("the disk is gone"), oldest },
      wordy: { outline: () => refuse("é".repeat(200)), oldest },
      pruned: { outline, oldest: () => ({ ...oldest(), block: 1_000 }) },
    };
    const cases = [
      ["newHeads", spoiled.missing, "pruned history unavailable"],
      ["newHeads", spoiled.broken, "internal error"],
      // A close frame holds 123 bytes of reason (RFC 6455, 5.5).
      ["newHeads", spoiled.wordy, "é".repeat(51)],
      ["logs", spoiled.pruned, "pruned history unavailable"],
      ["transactionReceipts", spoiled.pruned, "pruned history unavailable"],
    ] as const;
    for (const [topic, spoil, why] of cases) {
      const client = await openClient(url);
      const closed = once(client.socket, "close");
      await client.ask("eth_subscribe", topic);
      Object.assign(chain, spoil);
      // Two at once: the first is read back from the store.
      chain.add([]);
      chain.add([]);
      const [code, reason] = await closed;
      expect([topic, code, String(reason)]).toEqual([topic, 1011, `subscription ended: ${why}`]);
      Object.assign(chain, { outline, oldest });
    }
  });

  it("closes connections when it stops, also one that never answers", async () => {
    const { url, server } = await startNode();
    const client = await openClient(url);
    const { port } = server.address;
    const silent = connect(port, "127.0.0.1");
    cleanups.push(() => {
      silent.destroy();
    });
    silent.write(
      "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    await once(silent, "data");
    const closed = once(client.socket, "close");
    await server.stop();
    expect((await closed)[0]).toBe(1012);
  });
});

describe("connections that never become clients", () => {
  it("write one line of log in ten seconds, however many they are", async () => {
    const { api, url } = await startNode({ webSocketConnections: 1 });
    const said = jest.spyOn(api.log, "warn").mockImplementation(() => undefined);
    await openClient(url);
    for (let count = 0; count < 5; count++) await expect(openClient(url)).rejects.toThrow("503");
    expect(said).toHaveBeenCalledTimes(1);
  });

  it("are of one client no more than half of all", async () => {
    const { server } = await startNodeSeen();
    // Some of them are clients, others idle: of 276 connections half.
    const sockets = Array.from({ length: 139 }, () => {
      const socket = new Socket();
      cleanups.push(() => void socket.destroy());
      return Object.defineProperty(socket, "remoteAddress", { value: "203.0.113.1" });
    });
    for (const socket of sockets) server.emit("connection", socket);
    // One that the server hands itself again is no other.
    for (const socket of sockets) server.emit("connection", socket);
    expect(sockets.findIndex(({ destroyed }) => destroyed)).toBe(138);
  });

  it("are refused beyond a bound, and a client finds room when some are gone", async () => {
    const { url, server } = await startNode({ webSocketConnections: 4 });
    const sockets = Array.from({ length: 270 }, () => {
      const socket = connect(server.address.port, server.address.host);
      cleanups.push(() => void socket.destroy());
      return socket.on("error", () => undefined).resume();
    });
    const open = () => sockets.filter(({ destroyed }) => !destroyed);
    await until(() => open().length <= 260, { timeoutMs: 10_000 });
    expect(open()).toHaveLength(260);
    for (const socket of open().slice(0, 20)) socket.destroy();
    await until(
      () =>
        openClient(url).then(
          () => true,
          () => false,
        ),
      { timeoutMs: 10_000 },
    );
  });
});
