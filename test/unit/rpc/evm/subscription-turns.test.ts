/**
 * What a block or a burst of transactions means to subscriptions is sent in slices: one client with
 * many of them holds up neither the thread that decides blocks nor anybody else.
 */
import { expect, it } from "@jest/globals";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parseAddress } from "../../../../chain/address.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { parseHexBytes } from "../../../../chain/hex.js";
import { FilterRegistry } from "../../../../node/rpc/evm/filters.js";
import { parseLogFilter } from "../../../../node/rpc/evm/log-filter.js";
import type { Subscriber } from "../../../../node/rpc/evm/method.js";
import { DEFAULT_EVM_RPC_LIMITS, type EvmRpcLimits } from "../../../../node/rpc/evm/options.js";
import { RequestContext } from "../../../../node/rpc/evm/request-context.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { ALICE, createTestNode, signLegacy } from "./fixture.js";

const LOGS = 2_000;
const SUBSCRIPTIONS = 20;
/** What may wait for a client; some of the parts in which logs of the past are sent. */
const FAR_BYTES = 16 * 1024 * 1024;
const CONTRACT = parseAddress(`0x${"aa".repeat(20)}`);
/** Four lists of a thousand topics: a fiftieth of the room for them. */
const FIFTIETH = Array.from({ length: 4 }, () =>
  Array.from({ length: 1_000 }, (_, at) => keccak256Hex(Uint8Array.of(at & 255, at >> 8))),
);

interface Notification {
  readonly params: { readonly result: unknown };
}

interface PlacedNotification {
  readonly params: { readonly result: { readonly blockNumber: string; readonly logIndex: string } };
}

interface ReceiptsNotification {
  readonly params: { readonly result: readonly { readonly transactionHash: string }[] };
}

/** A client that takes whatever it is sent, at once. */
class TestSubscriber implements Subscriber {
  readonly texts: string[] = [];
  isDropped = false;
  /** Where it is, as far as that is known. */
  constructor(readonly remoteAddress?: string) {}
  private readonly closings: (() => void)[] = [];

  get isBehind(): boolean {
    return false;
  }
  notify(text: string): void {
    this.texts.push(text);
  }
  tooSlow(): void {
    this.isDropped = true;
    this.close();
  }
  failed(): void {
    this.tooSlow();
  }
  async drained(): Promise<void> {
    await nextTurn();
  }
  onClose(callback: () => void): void {
    this.closings.push(callback);
  }
  close(): void {
    for (const closing of this.closings.splice(0)) closing();
  }
  /** Hashes of the transactions of which receipts came, list by list. */
  lists(): string[][] {
    return this.texts.map((text) => {
      const { result } = (JSON.parse(text) as ReceiptsNotification).params;
      return result.map(({ transactionHash }) => transactionHash);
    });
  }
  results(id: unknown): unknown[] {
    return this.texts
      .filter((text) => text.includes(`"subscription":"${String(id)}"`))
      .map((text) => (JSON.parse(text) as Notification).params.result);
  }
}

/** A client that takes what it is sent as slowly as it comes over a line. */
class FarSubscriber extends TestSubscriber {
  private unsentBytes = 0;

  override get isBehind(): boolean {
    return this.unsentBytes > FAR_BYTES / 2;
  }
  override notify(text: string): void {
    this.unsentBytes += text.length;
    if (this.unsentBytes > FAR_BYTES) this.tooSlow();
    super.notify(text);
  }
  override async drained(): Promise<void> {
    await super.drained();
    this.unsentBytes = 0;
  }
}

function startNode(limits: Partial<EvmRpcLimits> = {}) {
  const node = createTestNode(limits);
  const request = async (client: TestSubscriber, method: string, params: readonly unknown[]) => {
    const { remoteAddress } = client;
    const from = remoteAddress === undefined ? {} : { remoteAddress };
    const context = new RequestContext(5_000, client, from);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const reply = await node.api.dispatcher.handle(Buffer.from(body), context);
    context.finish();
    return JSON.parse(reply?.map(String).join("") ?? "null") as {
      result?: string;
      error?: { code: number; message: string };
    };
  };
  const subscribe = (client: TestSubscriber, ...params: readonly unknown[]) =>
    request(client, "eth_subscribe", params);
  /** How often there is room for it. */
  const roomFor = async (...what: Parameters<typeof request>) => {
    for (let count = 0; ; count++) {
      const { error } = await request(...what);
      if (error === undefined) continue;
      expect(error.code).toBe(-32005);
      return count;
    }
  };
  const many = async (subscriber: TestSubscriber, ...params: readonly unknown[]) => {
    const ids = [];
    for (let count = 0; count < SUBSCRIPTIONS; count++) {
      ids.push((await subscribe(subscriber, ...params)).result);
    }
    return ids;
  };
  return { ...node, subscribe, roomFor, many };
}

async function blockOfLogs() {
  const log = { address: CONTRACT, topics: [], data: new Uint8Array(0) };
  const raw = await signLegacy(ALICE, { nonce: 0 });
  return [{ raw, logs: Array.from({ length: LOGS }, () => log) }];
}

/** Turns of the event loop until the condition holds. */
async function turnsUntil(condition: () => boolean): Promise<number> {
  let turns = 0;
  for (; !condition(); turns++) await nextTurn();
  return turns;
}

it("sends the logs of a block to many subscriptions over many turns, all of them in order", async () => {
  const { chain, many } = startNode();
  const greedy = new TestSubscriber();
  const ids = await many(greedy, "logs");
  chain.add(await blockOfLogs());
  expect(greedy.texts.length).toBeLessThan(LOGS * SUBSCRIPTIONS);
  const turns = await turnsUntil(() => greedy.texts.length >= LOGS * SUBSCRIPTIONS);
  expect(turns).toBeGreaterThan(1);
  expect(greedy.texts).toHaveLength(LOGS * SUBSCRIPTIONS);
  const indices = greedy.results(ids.at(-1)) as { logIndex: string }[];
  expect(indices.map(({ logIndex }) => Number(logIndex))).toEqual(
    Array.from({ length: LOGS }, (_, index) => index),
  );
});

it("tells others of the block before a greedy client has everything", async () => {
  const { chain, many, subscribe } = startNode();
  const [greedy, modest] = [new TestSubscriber(), new TestSubscriber()];
  await many(greedy, "logs");
  await subscribe(modest, "newHeads");
  chain.add(await blockOfLogs());
  chain.add([]);
  await turnsUntil(() => modest.texts.length >= 2);
  expect(greedy.texts.length).toBeLessThan(LOGS * SUBSCRIPTIONS);
  await turnsUntil(() => greedy.texts.length >= LOGS * SUBSCRIPTIONS);
  expect(modest.texts).toHaveLength(2);
});

it("misses no block and repeats none where more blocks come than it has sent", async () => {
  const { chain, many, subscribe } = startNode();
  const client = new TestSubscriber();
  await many(client, "logs");
  const { result: heads } = await subscribe(client, "newHeads");
  for (let count = 0; count < 3; count++) chain.add(await blockOfLogs());
  await turnsUntil(() => client.texts.length >= 3 * (LOGS * SUBSCRIPTIONS + 1));
  const numbers = (client.results(heads) as { number: string }[]).map(({ number }) => number);
  expect(numbers).toEqual(["0x1", "0x2", "0x3"]);
});

it("sends a block of more logs than may wait for a client in parts, live and of the past", async () => {
  const { chain, subscribe } = startNode();
  const data = new Uint8Array(20_000);
  const raw = await signLegacy(ALICE, { nonce: 0 });
  const logs = Array.from({ length: 500 }, () => ({ address: CONTRACT, topics: [], data }));
  const early = new FarSubscriber();
  await subscribe(early, "logs");
  chain.add([{ raw, logs }]);
  chain.add([{ raw, logs: logs.slice(0, 3) }]);
  const late = new FarSubscriber();
  await subscribe(late, "logs", { fromBlock: "0x1" });
  for (const client of [early, late]) {
    await turnsUntil(() => client.isDropped || client.texts.length >= 503);
    expect(client.isDropped).toBe(false);
    const places = client.texts.map((text) => {
      const { blockNumber, logIndex } = (JSON.parse(text) as PlacedNotification).params.result;
      return Number(blockNumber) * 10_000 + Number(logIndex);
    });
    const ofBlock = (number: number, count: number) =>
      Array.from({ length: count }, (_, index) => number * 10_000 + index);
    expect(places).toEqual([...ofBlock(1, 500), ...ofBlock(2, 3)]);
  }
});

it.each([
  ["every transaction", () => []],
  ["some transactions", (hashes: readonly string[]) => [{ transactionHashes: hashes }]],
])("sends receipts of %s in parts where a block has more than a message", async (_, options) => {
  const { chain, subscribe } = startNode();
  const logs = [{ address: CONTRACT, topics: [], data: new Uint8Array(400_000) }];
  const raws = [];
  for (let nonce = 0; nonce < 31; nonce++) raws.push(await signLegacy(ALICE, { nonce }));
  const hashes = raws.map((raw) => keccak256Hex(parseHexBytes(raw)));
  const early = new FarSubscriber();
  await subscribe(early, "transactionReceipts", ...options(hashes));
  chain.add(raws.slice(0, 30).map((raw) => ({ raw, logs })));
  chain.add(raws.slice(30).map((raw) => ({ raw, logs })));
  const late = new FarSubscriber();
  const past = Object.assign({ fromBlock: "0x1" }, ...options(hashes));
  await subscribe(late, "transactionReceipts", past);
  for (const client of [early, late]) {
    await turnsUntil(() => client.isDropped || client.texts.length >= 6);
    expect(client.isDropped).toBe(false);
    const lists = client.lists();
    expect(lists.flat()).toEqual(hashes);
    // Of whole receipts, each of 0.8 MB; none is of two blocks.
    expect(lists.map((list) => list.length)).toEqual([6, 6, 6, 6, 6, 1]);
  }
});

it("sends logs from any block on, headers and receipts from some blocks back", async () => {
  const { chain, subscribe } = startNode({ logBlocks: 5 });
  const raw = await signLegacy(ALICE, { nonce: 0 });
  const logs = [{ address: CONTRACT, topics: [], data: new Uint8Array(0) }];
  for (let height = 1; height <= 12; height++) chain.add(height % 6 === 1 ? [{ raw, logs }] : []);
  const client = new TestSubscriber();
  // go-ethereum's WatchOpts.Start is any block.
  const { result: id } = await subscribe(client, "logs", { fromBlock: "0x1" });
  await turnsUntil(() => client.texts.length >= 2 || id === undefined);
  expect(client.results(id)).toMatchObject([{ blockNumber: "0x1" }, { blockNumber: "0x7" }]);
  for (const topic of ["newHeads", "transactionReceipts"]) {
    expect((await subscribe(client, topic, { fromBlock: "0x7" })).error).toEqual({
      code: -32602,
      message: "exceed maximum block range: 5",
    });
  }
});

it("stops at once with eth_unsubscribe, and with the connection", async () => {
  const { chain, many } = startNode();
  const client = new TestSubscriber();
  await many(client, "logs");
  chain.add(await blockOfLogs());
  client.close();
  const sent = client.texts.length;
  for (let turn = 0; turn < 20; turn++) await nextTurn();
  expect(client.texts).toHaveLength(sent);
});

it("makes no subscription for a client that is gone before its batch is through", async () => {
  const { api, calls, chain } = startNode();
  const client = new TestSubscriber();
  const context = new RequestContext(5_000, client);
  let answerCall: () => void = () => undefined;
  const isHeld = new Promise<void>((resolve) => {
    answerCall = resolve;
  });
  const { result } = calls;
  calls.call = async () => {
    await isHeld;
    return result;
  };
  // A poll waits for what comes before it.
  const methods = ["eth_call", "eth_getFilterChanges", "eth_subscribe"];
  const params = [[{}], ["0x1"], ["newHeads"]];
  const batch = methods.map((method, id) => ({ jsonrpc: "2.0", id, method, params: params[id] }));
  const reply = api.dispatcher.handle(Buffer.from(JSON.stringify(batch)), context);
  await nextTurn();
  // In the order of a socket that is closed.
  context.cancel();
  client.close();
  answerCall();
  await reply;
  context.finish();
  chain.add([]);
  for (let turn = 0; turn < 20; turn++) await nextTurn();
  expect(client.texts).toEqual([]);
  expect(await api.metrics.page()).toContain("causeway_jsonrpc_subscriptions 0");
});

it("tells pending transactions in slices, and ends a client that has too many to come", async () => {
  const { bus, chain, many } = startNode();
  const { block } = chain.add([{ raw: await signLegacy(ALICE, { nonce: 0 }) }]);
  const [mined] = block.transactions;
  if (mined === undefined) throw new Error("no transaction");
  const client = new TestSubscriber();
  await many(client, "newPendingTransactions");
  const burst = Array.from({ length: LOGS }, () => mined);
  bus.emit("pendingTransactions", burst);
  expect(client.texts.length).toBeLessThan(LOGS * SUBSCRIPTIONS);
  await turnsUntil(() => client.texts.length >= LOGS * SUBSCRIPTIONS);
  expect(client.texts).toHaveLength(LOGS * SUBSCRIPTIONS);
  expect(client.isDropped).toBe(false);
  for (let count = 0; count < 40; count++) bus.emit("pendingTransactions", burst);
  expect(client.isDropped).toBe(true);
});

it("bounds the addresses and topics that all subscriptions and all filters hold", async () => {
  const { subscribe, ask } = startNode();
  const topics = Array.from({ length: 1_000 }, (_, index) =>
    keccak256Hex(Uint8Array.of(index & 255, index >> 8)),
  );
  const large = { topics: [topics, topics, topics, topics] };
  const client = new TestSubscriber();
  for (let count = 0; count < 50; count++) {
    expect((await subscribe(client, "logs", large)).error).toBeUndefined();
    expect((await ask("eth_newFilter", large)).error).toBeUndefined();
  }
  const refusal = { code: -32005, message: "too many addresses and topics are kept in filters" };
  const other = new TestSubscriber();
  expect((await subscribe(other, "logs", large)).error).toEqual(refusal);
  expect((await ask("eth_newFilter", large)).error).toEqual(refusal);
  expect((await subscribe(other, "newHeads")).error).toBeUndefined();
  client.close();
  expect((await subscribe(other, "logs", large)).error).toBeUndefined();
});

it.each([
  ["topics of subscriptions", 50, "eth_subscribe", ["logs", { topics: FIFTIETH }]],
  [
    "hashes that are waited for",
    1_000,
    "eth_subscribe",
    ["transactionReceipts", { transactionHashes: FIFTIETH[0]?.slice(0, 200) }],
  ],
  ["filters", 50, "eth_newBlockFilter", []],
])(
  "one client has half of the room for %s, then each a tenth",
  async (_of, most, method, params) => {
    const { roomFor, subscribe } = startNode({ filters: 50, subscriptionsPerConnection: 1_000 });
    const from = (address: string) => {
      const client = new TestSubscriber(address);
      return { client, room: () => roomFor(client, method, params) };
    };
    const stranger = from("203.0.113.1");
    expect(await stranger.room()).toBe(most / 2);
    // By another connection, too.
    expect(await from("::ffff:203.0.113.1").room()).toBe(0);
    expect(await from("203.0.113.2").room()).toBe(most / 10);
    // This machine is not held to it: a proxy or the kit's own parts may speak for many.
    expect(await from("127.0.0.1").room()).toBe(most / 2 - most / 10);
    expect(await from("203.0.113.3").room()).toBe(0);
    // What keeps nothing has room for everybody.
    for (const topic of ["logs", "transactionReceipts"]) {
      expect((await subscribe(stranger.client, topic)).error).toBeUndefined();
    }
    stranger.client.close();
    const again = method === "eth_subscribe" ? most / 10 : 0;
    expect(await from("203.0.113.3").room()).toBe(again);
  },
);

it("one client has half of the room for topics of filters, until they are gone", () => {
  const filters = new FilterRegistry(
    { ...systemClock, monotonicMs: () => 0 },
    DEFAULT_EVM_RPC_LIMITS,
  );
  const filter = parseLogFilter({ topics: FIFTIETH });
  const install = (client: string) =>
    filters.install({ kind: "log", filter, next: { height: 1, given: 0 } }, client);
  const ids = Array.from({ length: 25 }, () => install("203.0.113.1"));
  const full = "too many addresses and topics are kept in filters";
  expect(() => install("203.0.113.1")).toThrow(full);
  const others = Array.from({ length: 5 }, () => install("203.0.113.2"));
  expect(() => install("203.0.113.2")).toThrow(full);
  for (const id of [...ids.slice(0, 6), ...others]) expect(filters.uninstall(id)).toBe(true);
  for (let count = 0; count < 6; count++) install("203.0.113.2");
  expect(() => install("203.0.113.2")).toThrow(full);
});
