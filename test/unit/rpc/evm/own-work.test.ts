/** What payments and gossip wait for does not wait in the lines of those who look at the chain. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import type { CallPoolOptions } from "../../../../node/execution/calls/call-pool.js";
import type { CallRequest } from "../../../../node/execution/calls/call-port.js";
import { CallPool } from "../../../../node/execution/calls/call-pool.js";
import { BlockJson } from "../../../../node/rpc/evm/json/block-json.js";
import type { Subscriber } from "../../../../node/rpc/evm/method.js";
import { RequestContext } from "../../../../node/rpc/evm/request-context.js";
import { endlessSignal, OWN_WORK, ownerOf } from "../../../../runtime/process/work-owner.js";
import { EndlessWork, spin } from "../../../helpers/effort/endless-work.js";
import { until } from "../../../helpers/until.js";
import { ALICE, createTestNode, signLegacy } from "./fixture.js";

const STRANGERS = 60;
/** Fewer turns than one for each stranger, of work that waits a few times. */
const FEW_TURNS = 40;
const KIT = "127.0.0.1";
const CONTRACT = parseAddress(`0x${"aa".repeat(20)}`);

let endless: EndlessWork;
beforeEach(async () => {
  endless = new EndlessWork();
  for (let at = 0; at < STRANGERS; at++) endless.start(2, { client: `10.0.0.${at}` });
  await endless.begun();
});
afterEach(() => endless.end());

function startNode() {
  const node = createTestNode();
  const ask = async (remoteAddress: string, body: unknown, subscriber?: Subscriber) => {
    const context = new RequestContext(60_000, subscriber, { remoteAddress });
    const text = Buffer.from(JSON.stringify(body));
    const reply = await node.api.dispatcher.handle(text, context);
    context.finish();
    return JSON.parse(reply?.map(String).join("") ?? "null");
  };
  const request = (method: string, ...params: readonly unknown[]) => {
    return { jsonrpc: "2.0", id: 1, method, params };
  };
  return { ...node, ask, request };
}

/** A first block that is read without end, by subscriptions that want something of it. */
class EndlessPast {
  readers = 0;
  private isOver = false;
  private readonly closings: (() => void)[] = [];

  constructor(chain: ReturnType<typeof createTestNode>["chain"]) {
    const { pages } = chain;
    const pageLogs = chain.pageLogs.bind(chain);
    chain.pages = (height) => (height === 1 ? this.read(pages(height)) : pages(height));
    chain.pageLogs = (height, start, isWanted) =>
      height === 1 ? this.read([undefined]) : pageLogs(height, start, isWanted);
  }

  /** A client that takes whatever it is sent, until the end. */
  subscriber(): Subscriber {
    return {
      isBehind: false,
      notify: () => undefined,
      tooSlow: () => undefined,
      failed: () => undefined,
      drained: () => Promise.resolve(),
      onClose: (callback) => this.closings.push(callback),
    };
  }

  end(): void {
    this.isOver = true;
    for (const closing of this.closings) closing();
  }

  /** The same again and again, each time after a moment. */
  private *read<Item>(items: Iterable<Item>): Generator<Item, void> {
    this.readers += 1;
    const all = [...items];
    while (!this.isOver) {
      spin(1);
      yield* all;
    }
  }
}

describe("while sixty strangers keep the thread", () => {
  it("a block's journal is made every second turn", async () => {
    const { ask, request, chain } = startNode();
    const { block } = chain.add([{ raw: await signLegacy(ALICE, { nonce: 0 }) }]);
    const wanted = request("causeway_getBlockJournal", block.hash);
    const turns = await endless.during(async () => {
      expect(await ask(KIT, wanted)).toHaveProperty("result");
    });
    expect(turns).toBeLessThan(FEW_TURNS);
  });

  it("a call begins every second turn, whoever asks", async () => {
    const view = { head: () => ({ height: 1 }), outline: () => undefined };
    const options = { view, params: {}, workerCount: 0, chainId: 1n, gasCap: 1n, timeoutMs: 1 };
    const calls = new CallPool(options as unknown as CallPoolOptions);
    const { signal } = new AbortController();
    const turns = await endless.during(() =>
      // Of a height that is not there, which it looks for when it begins.
      expect(calls.call({} as CallRequest, 2, { signal, client: KIT })).rejects.toThrow(
        "header not found",
      ),
    );
    expect(turns).toBeLessThan(FEW_TURNS);
    await calls.close();
  });

  it("subscriptions are told every second turn", async () => {
    const { ask, request, chain } = startNode();
    const texts: string[] = [];
    const subscriber: Subscriber = {
      isBehind: false,
      notify: (text) => texts.push(text),
      tooSlow: () => undefined,
      failed: () => undefined,
      drained: () => Promise.resolve(),
      onClose: () => undefined,
    };
    await ask(KIT, request("eth_subscribe", "newHeads"), subscriber);
    chain.add([{ raw: await signLegacy(ALICE, { nonce: 0 }) }]);
    const turns = await endless.during(() => until(() => texts.length === 1, { timeoutMs: 5_000 }));
    expect(turns).toBeLessThan(FEW_TURNS);
  });

  it.each([
    ["logs", { fromBlock: "0x1", address: CONTRACT }],
    ["transactionReceipts", { fromBlock: "0x1", transactionHashes: [`0x${"cd".repeat(32)}`] }],
  ])(
    "a block's journal does not wait for %s of the past that they subscribe to",
    async (...topic) => {
      const { ask, request, chain } = startNode();
      const logs = [{ address: CONTRACT, topics: [], data: new Uint8Array(0) }];
      chain.add([{ raw: await signLegacy(ALICE, { nonce: 0 }), logs }]);
      const { block } = chain.add([{ raw: await signLegacy(ALICE, { nonce: 1 }) }]);
      const past = new EndlessPast(chain);
      for (let at = 0; at < STRANGERS; at++) {
        const wanted = request("eth_subscribe", ...topic);
        expect(await ask(`10.0.1.${at}`, wanted, past.subscriber())).toHaveProperty("result");
      }
      await until(() => past.readers === STRANGERS, { timeoutMs: 5_000 });
      const wanted = request("causeway_getBlockJournal", block.hash);
      const turns = await endless.during(async () => {
        expect(await ask(KIT, wanted)).toHaveProperty("result");
      });
      past.end();
      expect(turns).toBeLessThan(FEW_TURNS);
    },
  );

  it("receipts that all subscribers wait for are not behind what the first of them waits for", async () => {
    const owner = { client: KIT, isOwn: true };
    endless.start(STRANGERS, owner);
    await endless.begun();
    const { chain } = startNode();
    const limits = { cacheBytes: 0, responseBytes: 1_000_000 };
    const json = new BlockJson(chain, limits, { consensusBlockHash: () => undefined });
    chain.add([{ raw: await signLegacy(ALICE, { nonce: 0 }) }]);
    const asker = { signal: endlessSignal(owner), client: OWN_WORK.client };
    const turns = await endless.during(async () => {
      expect(await json.receipts(1, asker)).toBeDefined();
    });
    expect(turns).toBeLessThan(FEW_TURNS);
  });

  it("the calls of a batch wait as their client's", async () => {
    endless.start(200, { client: "10.0.1.1" });
    await endless.begun();
    const { ask, request } = startNode();
    const batch = Array.from({ length: 3 }, () => request("eth_chainId"));
    const turns = await endless.during(async () => {
      expect(await ask("10.0.1.2", batch)).toHaveLength(batch.length);
    });
    // One of each client's between two of its own.
    expect(turns).toBeLessThan((batch.length + 1) * (STRANGERS + 2));
  });
});

describe("a request's signal", () => {
  it("says whose it is, and so do those of a batch's calls", async () => {
    const { api, calls } = startNode();
    const context = new RequestContext(60_000, undefined, { remoteAddress: "::ffff:192.0.2.1" });
    expect(ownerOf(context.signal)).toEqual({ client: "192.0.2.1" });
    const call = { jsonrpc: "2.0", id: 1, method: "eth_call", params: [{}] };
    await api.dispatcher.handle(Buffer.from(JSON.stringify([call])), context);
    const options = calls.last?.options as { readonly signal: AbortSignal } | undefined;
    expect(ownerOf(options?.signal)).toEqual({ client: "192.0.2.1" });
    context.finish();
  });
});
