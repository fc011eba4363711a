/** Events of the consensus RPC over WebSocket: kinds, order, limits, clients that do not read. */
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Wallet } from "ethers";
import { type ClientOptions, type RawData, WebSocket } from "ws";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import { VOTE_TYPE } from "../../../../chain/consensus/vote.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { jsonArguments } from "../../../../node/rpc/comet/arguments.js";
import { ResultTexts } from "../../../../node/rpc/comet/json/result-texts.js";
import type { EventReceiver } from "../../../../node/rpc/comet/route.js";
import { CometConnection } from "../../../../node/rpc/comet/socket-connection.js";
import { SubscriptionHub } from "../../../../node/rpc/comet/subscriptions.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { CometTestChain } from "../../../helpers/chains/comet-chain.js";
import { until } from "../../../helpers/until.js";

const faucet = new Wallet(`0x${"31".repeat(32)}`);
const shop = `0x${"77".repeat(20)}`;
const PATIENCE = { timeoutMs: 5_000 };

let chain: CometTestChain;

interface Message {
  readonly id: unknown;
  readonly result?: {
    readonly query?: string;
    readonly data?: { readonly type: string; readonly value: unknown };
    readonly events?: Readonly<Record<string, readonly string[]>>;
  };
  readonly error?: { readonly code: number; readonly data?: string };
}

/** A WebSocket client that keeps what it gets. */
class Client {
  readonly messages: Message[] = [];
  closeCode: number | undefined;
  private nextId = 0;

  private constructor(readonly socket: WebSocket) {
    socket.on("message", (data: RawData) => {
      const text = Buffer.isBuffer(data) ? data.toString("utf8") : "";
      this.messages.push(JSON.parse(text) as Message);
    });
    socket.on("close", (code) => {
      this.closeCode = code;
    });
  }

  static async open(options: ClientOptions = {}): Promise<Client> {
    const socket = new WebSocket(`${chain.url.replace("http", "ws")}/websocket`, options);
    const client = new Client(socket);
    await new Promise((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    return client;
  }

  /** Calls a method; the answer is the first message with the id. */
  async call(method: string, params: unknown = {}): Promise<Message> {
    const id = `call-${this.nextId++}`;
    this.socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    await until(() => this.messages.some((message) => message.id === id), PATIENCE);
    const found = this.messages.find((message) => message.id === id);
    if (found === undefined) throw new Error("no answer");
    return found;
  }

  async subscribe(query: string): Promise<Message> {
    return this.call("subscribe", { query });
  }

  /** Events so far: those with data, without answers. */
  get events(): Message[] {
    return this.messages.filter(({ result }) => result?.data !== undefined);
  }

  get types(): string[] {
    return this.events.map(({ result }) => result?.data?.type.split("/").at(-1) ?? "");
  }

  async close(): Promise<void> {
    this.socket.close();
    await until(() => this.socket.readyState === WebSocket.CLOSED, PATIENCE);
  }
}

let nonce = 0;

function send(): Promise<string> {
  return faucet.signTransaction({
    type: 0,
    chainId: 6940,
    nonce: nonce++,
    gasPrice: 25_000_000n,
    gasLimit: 21_000n,
    to: shop,
    value: 5n,
  });
}

beforeAll(async () => {
  // Only the interval of the pings is a fake: everything else waits for real sockets.
  jest.useFakeTimers({
    doNotFake: [
      "Date",
      "hrtime",
      "nextTick",
      "performance",
      "queueMicrotask",
      "setImmediate",
      "clearImmediate",
      "setTimeout",
      "clearTimeout",
    ],
  });
  chain = await CometTestChain.open(faucet.address);
});

afterAll(async () => {
  await chain.close();
  jest.useRealTimers();
});

describe("events", () => {
  it("of a block come in CometBFT's order, with the id of the subscription", async () => {
    const client = await Client.open();
    const query = "tm.event EXISTS";
    expect(await client.subscribe(query)).toMatchObject({ result: {} });
    await chain.mine([await send(), await send()]);
    const kinds = ["NewBlock", "NewBlockHeader", "NewBlockEvents", "Tx", "Tx"];
    await until(() => client.events.length >= kinds.length, PATIENCE);
    expect(client.types).toEqual(kinds);
    for (const message of client.events)
      expect([message.id, message.result?.query]).toEqual(["call-0", query]);
    const [block, header, blockEvents, tx] = client.events;
    expect(block?.result).toMatchObject({
      data: {
        type: "tendermint/event/NewBlock",
        value: {
          block: { header: { height: "1" } },
          result_finalize_block: { tx_results: [{}, {}] },
        },
      },
      events: { "tm.event": ["NewBlock"], "fee_burn.proposer_reward": ["0atoken"] },
    });
    expect(header?.result?.events).toEqual({ "tm.event": ["NewBlockHeader"] });
    expect(blockEvents?.result?.data?.value).toMatchObject({ height: "1", num_txs: "2" });
    expect(tx?.result?.events).toMatchObject({
      "tm.event": ["Tx"],
      "tx.height": ["1"],
      "tx.hash": [expect.stringMatching(/^[0-9A-F]{64}$/)],
      "transfer.recipient": [expect.any(String), toBech32(parseAddress(shop))],
    });
    await client.close();
  });

  it("come for the heights after the subscription, each once, also when many come at once", async () => {
    const client = await Client.open();
    await client.subscribe("tm.event='NewBlockHeader'");
    const from = chain.consensus.height();
    await Promise.all([chain.mine(), client.call("health")]);
    await chain.mine();
    await chain.mine();
    const later = await Client.open();
    await later.subscribe("tm.event='NewBlockHeader'");
    await chain.mine();
    await until(() => client.events.length >= 4 && later.events.length >= 1, PATIENCE);
    const heights = (one: Client) =>
      one.events.map(({ result }) => {
        const value = result?.data?.value as { header?: { height: string } } | undefined;
        return Number(value?.header?.height);
      });
    expect(heights(client)).toEqual([from + 1, from + 2, from + 3, from + 4]);
    expect(heights(later)).toEqual([from + 4]);
    await Promise.all([client.close(), later.close()]);
  });

  it("of a height that was there before a subscription are not told to it", async () => {
    const log = createLogger({ component: "test", level: "silent" });
    const hub = new SubscriptionHub(chain.ports, new ResultTexts(chain.ports.view), log);
    const subscribe = new Map(hub.routes()).get("subscribe");
    const { signal } = new AbortController();
    const receiver = () => {
      const texts: Buffer[] = [];
      const connection: EventReceiver = {
        push: (text) => {
          texts.push(text);
          return "sent";
        },
        cutOff: () => undefined,
        onClose: () => undefined,
      };
      const values = jsonArguments({ query: "tm.event='NewBlockHeader'" }, ["query"]);
      subscribe?.run(values, { signal, clientAddress: "", client: { requestId: 1, connection } });
      return texts;
    };
    const early = receiver();
    await chain.mine();
    // Nobody was told of it yet: that happens in a later turn of the event loop.
    expect(early).toEqual([]);
    const late = receiver();
    await until(() => early.length === 1, PATIENCE);
    await chain.mine();
    await until(() => early.length === 2, PATIENCE);
    expect(late).toEqual(early.slice(1));
    hub.close();
    await chain.mine();
    await chain.mine();
    expect(early).toHaveLength(2);
  });

  it("of a height that cannot be read end the subscriptions that miss it, with the reason", async () => {
    const [waiting, votes] = [await Client.open(), await Client.open()];
    await waiting.subscribe("tm.event='NewBlockHeader'");
    await waiting.subscribe("transfer.amount=5");
    await votes.subscribe("tm.event='Vote'");
    const load = jest.spyOn(chain.ports.view, "load").mockRejectedValueOnce(new Error("damaged"));
    await chain.mine();
    await until(() => waiting.closeCode !== undefined, PATIENCE);
    load.mockRestore();
    const height = chain.consensus.height();
    const data = `subscription was canceled (reason: events of height ${height} cannot be read)`;
    expect(waiting.messages.slice(2)).toMatchObject([
      { id: "call-0", error: { code: -32000, data } },
      { id: "call-1", error: { code: -32000, data } },
    ]);
    expect([waiting.closeCode, waiting.events]).toEqual([1011, []]);
    // Who comes back goes on with what follows; votes are of no height.
    const back = await Client.open();
    await back.subscribe("tm.event='NewBlockHeader'");
    await chain.mine();
    await until(() => back.events.length === 1, PATIENCE);
    expect(votes.closeCode).toBeUndefined();
    expect((await votes.call("unsubscribe", { query: "tm.event='Vote'" })).error).toBeUndefined();
    await Promise.all([back.close(), votes.close()]);
  });

  it("of a height are told to a hundred clients over many turns", async () => {
    const log = createLogger({ component: "test", level: "silent" });
    const hub = new SubscriptionHub(chain.ports, new ResultTexts(chain.ports.view), log);
    const subscribe = new Map(hub.routes()).get("subscribe");
    const { signal } = new AbortController();
    const large = new Uint8Array(300_000);
    let turn = 0;
    const toldIn = new Map<number, number>();
    const told = () => [...toldIn.values()].reduce((sum, count) => sum + count, 0);
    for (let count = 0; count < 100; count++) {
      const connection: EventReceiver = {
        push: () => {
          // As long as it takes to encode a large event.
          keccak256Hex(large);
          toldIn.set(turn, (toldIn.get(turn) ?? 0) + 1);
          return "sent";
        },
        cutOff: () => undefined,
        onClose: () => undefined,
      };
      const values = jsonArguments({ query: "tm.event='NewBlockHeader'" }, ["query"]);
      subscribe?.run(values, { signal, clientAddress: "", client: { requestId: 1, connection } });
    }
    await chain.mine();
    for (; told() < 100; turn++) await nextTurn();
    hub.close();
    expect(Math.max(...toldIn.values())).toBeLessThan(100);
  });

  it("can be chosen by attributes alone, with & as the specification writes it", async () => {
    const client = await Client.open();
    await client.subscribe(
      `transfer.recipient='${toBech32(parseAddress(shop))}'&transfer.amount=5`,
    );
    await chain.mine();
    await chain.mine([await send()]);
    await until(() => client.events.length >= 1, PATIENCE);
    await client.call("health");
    expect(client.types).toEqual(["Tx"]);
    await client.close();
  });

  it("of consensus itself come as they happen", async () => {
    const client = await Client.open();
    for (const kind of ["NewRound", "Polka", "Vote"]) await client.subscribe(`tm.event='${kind}'`);
    const height = chain.consensus.height() + 1;
    const tell = (name: "NewRound" | "Polka" | "Lock", step: 2 | 4) => {
      for (const listener of chain.tellMoment) listener({ name, height, round: 1, step });
    };
    tell("NewRound", 2);
    tell("Lock", 4);
    tell("Polka", 4);
    const [validator] = chain.consensus.validators(height)?.validators ?? [];
    const validatorAddress = validator?.address ?? parseAddress(shop);
    const signature = new Uint8Array(64);
    const place = { height, round: 1, blockId: undefined, timeNs: 1_000n, validatorIndex: 0 };
    for (const listener of chain.tellVote) {
      listener({ ...place, type: VOTE_TYPE.prevote, validatorAddress, signature });
    }
    await until(() => client.events.length >= 3, PATIENCE);
    expect(client.types).toEqual(["NewRound", "RoundState", "Vote"]);
    expect(client.events[0]?.result?.data?.value).toMatchObject({
      height: `${height}`,
      round: 1,
      step: "RoundStepNewRound",
      proposer: { index: expect.any(Number) },
    });
    expect(client.events[1]?.result?.data?.value).toEqual({
      height: `${height}`,
      round: 1,
      step: "RoundStepPrevote",
    });
    expect(client.events[2]?.result?.data?.value).toMatchObject({ Vote: { type: 1, round: 1 } });
    await client.close();
  });

  it("stop after unsubscribe, whatever its spelling, and unsubscribe_all", async () => {
    const client = await Client.open();
    await client.subscribe("tm.event='NewBlockHeader' AND tm.event EXISTS");
    await client.subscribe("tm.event='NewBlock'");
    const spelled = "tm.event  =  'NewBlockHeader'&tm.event EXISTS";
    expect((await client.call("unsubscribe", { query: spelled })).result).toEqual({});
    expect((await client.call("unsubscribe", { query: spelled })).error?.data).toBe(
      "subscription not found",
    );
    await chain.mine();
    await until(() => client.events.length >= 1, PATIENCE);
    expect(client.types).toEqual(["NewBlock"]);
    expect((await client.call("unsubscribe_all")).result).toEqual({});
    expect((await client.call("unsubscribe_all")).error?.data).toBe("subscription not found");
    await chain.mine();
    await client.call("health");
    expect(client.types).toEqual(["NewBlock"]);
    await client.close();
  });
});

describe("limits", () => {
  it("are five subscriptions a client, each once, of readable queries", async () => {
    const client = await Client.open();
    for (let index = 0; index < 5; index++) {
      expect((await client.subscribe(`a.b=${index}`)).error).toBeUndefined();
    }
    expect((await client.subscribe("a.b=5")).error).toMatchObject({
      code: -32603,
      data: "max_subscriptions_per_client 5 reached",
    });
    await client.call("unsubscribe", { query: "a.b=4" });
    expect((await client.subscribe("a.b = 3")).error?.data).toBe("already subscribed");
    expect((await client.subscribe("a.b=='")).error?.data).toContain("failed to parse query");
    const long = `a.b='${"x".repeat(600)}'`;
    expect((await client.subscribe(long)).error?.data).toBe("maximum query length exceeded");
    await client.close();
  });

  it("tell a query with & from the same one with AND, and from no other spelling", async () => {
    const client = await Client.open();
    expect((await client.subscribe("a.b=1 AND c.d=2")).error).toBeUndefined();
    expect((await client.subscribe("a.b = 1 & c.d = 2")).error).toBeUndefined();
    for (const again of ["a.b=1  AND c.d = 2", "a.b=1&c.d=2"]) {
      expect((await client.subscribe(again)).error?.data).toBe("already subscribed");
    }
    // Each ends by its own spelling, and the last one by either.
    expect((await client.call("unsubscribe", { query: "a.b=1&c.d=2" })).error).toBeUndefined();
    expect((await client.call("unsubscribe", { query: "a.b=1&c.d=2" })).error).toBeUndefined();
    expect((await client.call("unsubscribe_all", {})).error?.data).toBe("subscription not found");
    await client.close();
  });

  it("are 500 subscribed clients; those that leave make room", async () => {
    const clients = await Promise.all(Array.from({ length: 501 }, () => Client.open()));
    const last = clients.at(-1);
    const others = clients.slice(0, 500);
    const answers = await Promise.all(others.map((client) => client.subscribe("a.b=1")));
    expect(answers.filter(({ error }) => error !== undefined)).toEqual([]);
    expect((await last?.subscribe("a.b=1"))?.error?.data).toBe(
      "max_subscription_clients 500 reached",
    );
    expect((await last?.call("status"))?.result).toHaveProperty("sync_info");
    await others[0]?.close();
    await until(async () => (await last?.subscribe("a.b=1"))?.error === undefined, PATIENCE);
    await Promise.all(clients.slice(1).map((client) => client.close()));
  });

  it("leave 500 idle connections alone and answer beside them", async () => {
    const clients = await Promise.all(Array.from({ length: 500 }, () => Client.open()));
    expect((await fetch(`${chain.url}/status`)).status).toBe(200);
    expect((await clients[499]?.call("health"))?.result).toEqual({});
    await Promise.all(clients.map((client) => client.close()));
  });

  it("cut off who does not read, with the reason, and keep telling the others", async () => {
    const slow = await Client.open();
    const quick = await Client.open();
    await slow.subscribe("tm.event='Vote'");
    await quick.subscribe("tm.event='NewBlockHeader'");
    slow.socket.pause();
    const signature = new Uint8Array(64);
    const validatorAddress = parseAddress(shop);
    const place = { height: 5, round: 0, blockId: undefined, timeNs: 1_000n, validatorIndex: 0 };
    const vote = { ...place, type: VOTE_TYPE.precommit, validatorAddress, signature };
    const cutOff = jest.spyOn(CometConnection.prototype, "cutOff");
    // Each vote is some 600 bytes; sixteen megabytes wait, some more are in the sockets' buffers.
    for (let sent = 0; sent < 200 && cutOff.mock.calls.length === 0; sent++) {
      for (let index = 0; index < 1_000; index++) for (const tell of chain.tellVote) tell(vote);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    cutOff.mockRestore();
    slow.socket.resume();
    await chain.mine();
    await until(() => quick.events.length >= 1, PATIENCE);
    await until(() => slow.closeCode !== undefined, PATIENCE);
    expect(slow.closeCode).toBe(1013);
    expect(slow.messages.at(-1)).toMatchObject({
      id: "call-0",
      error: { code: -32000, data: "subscription was canceled (reason: slow client)" },
    });
    await quick.close();
  });

  it("ping every 20 seconds, and end who does not answer", async () => {
    const alive = await Client.open();
    const dead = await Client.open({ autoPong: false });
    let pings = 0;
    alive.socket.on("ping", () => {
      pings += 1;
    });
    jest.advanceTimersByTime(20_000);
    await until(() => pings === 1, PATIENCE);
    // The pong is back before the next round trip is.
    await alive.call("health");
    expect(dead.closeCode).toBeUndefined();
    jest.advanceTimersByTime(20_000);
    await until(() => dead.closeCode !== undefined && pings === 2, PATIENCE);
    expect(alive.closeCode).toBeUndefined();
    await alive.close();
  });

  it("take WebSockets of any origin, and refuse other paths", async () => {
    const attempt = (path: string, options: ClientOptions = {}) =>
      new Promise<string>((resolve) => {
        const socket = new WebSocket(`${chain.url.replace("http", "ws")}${path}`, options);
        socket.once("error", (error) => resolve(error.message));
        socket.once("open", () => {
          socket.close();
          resolve("open");
        });
      });
    expect(await attempt("/other")).toContain("404");
    for (const origin of ["https://wallet.example", "https://other.example", "null"]) {
      expect([origin, await attempt("/websocket", { origin })]).toEqual([origin, "open"]);
    }
  });
});
