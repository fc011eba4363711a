/** Reads of blocks that are not in memory: the right answers, and no more read than is asked for. */
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { addressToBytes } from "../../../chain/address.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import { readHeight } from "../../../chain/encoding/height-bytes.js";
import { bytesToHex, type Hash32, hexToBytes } from "../../../chain/hex.js";
import { NETWORKS } from "../../../chain/networks.js";
import { logsToBloom } from "../../../chain/receipt.js";
import { signLegacy } from "../../../chain/transaction.js";
import { createEvmApi, type EvmApi } from "../../../node/rpc/evm/api.js";
import { DEFAULT_EVM_RPC_LIMITS } from "../../../node/rpc/evm/options.js";
import { RequestContext } from "../../../node/rpc/evm/request-context.js";
import { blockDeletions } from "../../../node/store/pruning/block-prune.js";
import { ConsensusStore } from "../../../node/store/consensus-store.js";
import { type KeySpace, storeKey } from "../../../node/store/database.js";
import { EventBus } from "../../../node/view/event-bus.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { turnsOf } from "../../helpers/effort/turns.js";
import { ExecutionChain, testGenesis } from "../../helpers/chains/execution-chain.js";
import { FakeCalls, FakePool } from "../../unit/rpc/evm/fixture.js";

const KEY = hexToBytes(`0x${"44".repeat(32)}`);
const OWNER = privateKeyToAddress(KEY);

/** First topics of the two contracts' logs. */
const OFTEN = `0x${"aa".repeat(32)}` as Hash32;
const SELDOM = `0x${"bb".repeat(32)}` as Hash32;

/** Transfers of the full block: some pages. */
const FULL = 900;

/** Deploys a contract whose calls leave `log2(0, 32, topic, caller)`. */
function logger(topic: Hash32): Uint8Array {
  return hexToBytes(`0x602880600b6000396000f3337f${topic.slice(2)}60206000a200`);
}

describe("blocks that are not in memory", () => {
  let chain: ExecutionChain;
  let api: EvmApi;
  let nonce = 0n;
  let bytesRead = 0;
  const often = contractAddressOf(OWNER, 0n);
  const seldom = contractAddressOf(OWNER, 1n);

  const raw = (fields: { to?: string; data?: Uint8Array; gasLimit?: bigint }): string => {
    const { to, data = new Uint8Array(0), gasLimit = 21_000n } = fields;
    const intent = { chainId: 6940n, nonce: nonce++, gasPriceAtoken: 25_000_000n, gasLimit };
    const whole = { ...intent, to: to as typeof often | undefined, valueAtoken: 0n, data };
    return bytesToHex(signLegacy(whole, KEY));
  };
  const call = (to: string) => raw({ to, gasLimit: 60_000n });
  const pay = (index: number) => raw({ to: `0x${index.toString(16).padStart(40, "7")}` });

  async function ask<Result>(method: string, ...params: unknown[]): Promise<Result> {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
    const context = new RequestContext(10_000, undefined);
    const reply = await api.dispatcher.handle(body, context);
    context.finish();
    const answer = JSON.parse((reply ?? []).map(String).join("")) as {
      result: Result;
      error?: unknown;
    };
    expect([method, answer.error]).toEqual([method, undefined]);
    return answer.result;
  }

  /** Everything that is asked in this file, in one go. */
  async function answers(): Promise<Record<string, unknown>> {
    const height = "0x3";
    const { hash, transactions } = await ask<{ hash: string; transactions: string[] }>(
      "eth_getBlockByNumber",
      height,
      false,
    );
    const chosen = [0, 1, 127, 128, 450, FULL - 1].map((index) => transactions[index]);
    return {
      hashes: transactions,
      full: await ask("eth_getBlockByHash", hash, true),
      receipts: await ask("eth_getBlockReceipts", height),
      journal: await ask("causeway_getBlockJournal", hash),
      count: await ask("eth_getBlockTransactionCountByNumber", height),
      header: await ask("eth_getHeaderByNumber", height),
      history: await ask("eth_feeHistory", "0x3", "0x4", [10, 90]),
      raw: await ask("debug_getRawBlock", height),
      rawReceipts: await ask("debug_getRawReceipts", height),
      owner: await ask("causeway_getAccountJournal", OWNER, 3, 4),
      single: await Promise.all(
        chosen.flatMap((of) => [
          ask("eth_getTransactionByHash", of),
          ask("eth_getTransactionReceipt", of),
        ]),
      ),
      logs: await ask("eth_getLogs", { fromBlock: "0x1", toBlock: "0x5" }),
    };
  }

  function openApi(): void {
    api = createEvmApi({
      view: chain.view,
      bus: new EventBus((error) => {
        throw error;
      }),
      pool: new FakePool(),
      calls: new FakeCalls(),
      network: NETWORKS.testnet,
      suggestedGasPriceAtoken: 25_000_000n,
      minimumGasPriceAtoken: 1n,
      isCatchingUp: () => false,
      peerHeight: () => 0,
      peerCount: () => 0,
      clientVersion: "test",
      coinbase: OWNER,
      consensusBlockHash: () => undefined,
      maxTransactionGas: 4_000_000n,
      chainAccounts: chain.genesis.params,
      retention: { proofs: 1_024 },
      refusedBlocks: () => [],
      limits: DEFAULT_EVM_RPC_LIMITS,
      clock: systemClock,
      log: createLogger({ component: "test", level: "silent" }),
      metrics: createMetrics({ processMetrics: false }),
    });
  }

  /** Opens the store again: nothing is in memory. */
  async function reopen(): Promise<void> {
    const { genesis, folder } = chain;
    await chain.close({ keep: true });
    chain = await ExecutionChain.open(genesis, { folder });
    openApi();
    const { database } = chain.stores;
    const get = database.get.bind(database);
    jest.spyOn(database, "get").mockImplementation((key, snapshot) => {
      const value = get(key, snapshot);
      bytesRead += value?.length ?? 0;
      return value;
    });
    bytesRead = 0;
  }

  let inMemory: Record<string, unknown>;

  beforeAll(async () => {
    chain = await ExecutionChain.open(testGenesis(OWNER));
    openApi();
    await chain.mine([
      raw({ data: logger(OFTEN), gasLimit: 200_000n }),
      raw({ data: logger(SELDOM), gasLimit: 200_000n }),
    ]);
    await chain.mine([call(often), call(seldom)]);
    const full = Array.from({ length: FULL }, (_, index) =>
      index === 450 ? call(seldom) : index % 3 === 0 ? call(often) : pay(index),
    );
    await chain.mine(full);
    for (let block = 0; block < 3; block++) await chain.mine([pay(block), call(often)]);
    inMemory = await answers();
  });

  afterAll(() => chain.close());

  it("are answered as when they were new", async () => {
    await reopen();
    expect(await answers()).toEqual(inMemory);
    const { logs, receipts } = inMemory as { logs: unknown[]; receipts: { logs: unknown[] }[] };
    expect(receipts).toHaveLength(FULL);
    expect(logs).toHaveLength(2 + FULL / 3 + 2);
  });

  it("keep the blooms that follow from their logs", () => {
    const { receipts } = chain.view.block(3) ?? { receipts: [] };
    expect(receipts).toHaveLength(FULL);
    for (const { logs, logsBloom } of receipts) {
      expect(Buffer.compare(logsBloom, logsToBloom(logs))).toBe(0);
    }
  });

  it("cost a page or two for a transaction, a receipt, or the hashes alone", async () => {
    const { hashes } = inMemory as { hashes: string[] };
    const whole = JSON.stringify(inMemory["full"]).length;
    for (const [method, ...params] of [
      ["eth_getTransactionByHash", hashes[700]],
      ["eth_getTransactionReceipt", hashes[700]],
      ["eth_getTransactionByBlockNumberAndIndex", "0x3", "0x2bc"],
      ["eth_getBlockByNumber", "0x3", false],
      ["eth_getHeaderByNumber", "0x3"],
      ["eth_getBlockTransactionCountByNumber", "0x3"],
    ] as const) {
      await reopen();
      await ask(method, ...params);
      expect([method, bytesRead > 0, bytesRead < whole / 15]).toEqual([method, true, true]);
    }
  });

  it("are looked through for logs only where the index names a page", async () => {
    const find = (filter: object) =>
      ask<{ transactionIndex: string; address: string }[]>("eth_getLogs", {
        fromBlock: "0x1",
        toBlock: "0x6",
        ...filter,
      });
    const caller = `0x${OWNER.slice(2).padStart(64, "0")}`;
    const nobody = `0x${"99".repeat(32)}`;
    await reopen();
    for (const filter of [
      { address: seldom },
      { topics: [SELDOM] },
      { address: seldom, topics: [SELDOM, caller] },
      { address: [seldom, nobody.slice(0, 42)], topics: [[SELDOM, nobody]] },
    ]) {
      bytesRead = 0;
      expect(await find(filter)).toMatchObject([
        { address: seldom, transactionIndex: "0x1" },
        { address: seldom, transactionIndex: "0x1c2" },
      ]);
      expect(bytesRead).toBeLessThan(40_000);
    }
    expect(await find({ address: seldom, topics: [OFTEN] })).toEqual([]);
    expect(await find({ topics: [SELDOM, nobody] })).toEqual([]);
    // Where the index cannot help, the blooms do: any address, any first topic, or too many.
    expect(await find({ topics: [null, caller] })).toHaveLength(2 + FULL / 3 + 3);
    const many = Array.from({ length: 40 }, (_, index) => `0x${`${index + 10}`.repeat(20)}`);
    expect(await find({ address: [...many, seldom] })).toHaveLength(2);
    expect(await find({ blockHash: undefined, fromBlock: "0x3", toBlock: "0x3" })).toHaveLength(
      FULL / 3,
    );
  });

  it("let others run while a whole one is made", async () => {
    await reopen();
    for (const method of ["eth_getBlockByNumber", "eth_getBlockReceipts"]) {
      const more = method === "eth_getBlockByNumber" ? [true] : [];
      const turns = await turnsOf(() => ask(method, "0x3", ...more));
      expect([method, turns > 1]).toEqual([method, true]);
    }
  });

  it("let others run while logs are looked for, however few there are", async () => {
    await reopen();
    // Each look at the clock is a millisecond later: what counts is that the clock is looked at.
    let nowMs = performance.now();
    const clock = jest.spyOn(performance, "now").mockImplementation(() => (nowMs += 1));
    let turns = 0;
    const count = () => {
      turns += 1;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    try {
      const nobody = `0x${"99".repeat(32)}`;
      for (const topics of [[null, nobody], [OFTEN]]) {
        const before = turns;
        await ask("eth_getLogs", { fromBlock: "0x1", toBlock: "0x6", topics });
        expect([topics, turns > before]).toEqual([topics, true]);
      }
    } finally {
      clearImmediate(timer);
      clock.mockRestore();
    }
  });

  it("give of a page's logs only those that are wanted", async () => {
    await reopen();
    const wanted = addressToBytes(seldom);
    const starts = chain.view.pageStarts(3);
    let seen = 0;
    const isWanted = (address: Uint8Array) => {
      seen += 1;
      return Buffer.compare(address, wanted) === 0;
    };
    const found = starts.flatMap((start) => [...chain.view.pageLogs(3, start, isWanted)]);
    expect(found.flatMap((match) => match?.log.address ?? [])).toEqual([seldom]);
    // Every log was held against the question as it is stored.
    expect(seen).toBe(FULL / 3);
  });

  it("end their work for a proof when the client is gone", async () => {
    await reopen();
    const ending = new AbortController();
    const slots = Array.from({ length: 64 }, (_, index) => bytesToHex(Buffer.alloc(32, index)));
    const wanted = slots as Hash32[];
    ending.abort(new Error("the client is gone"));
    await expect(chain.view.proof(often, wanted, 1, ending.signal)).rejects.toThrow("gone");
  });

  it("read each reverse diff once for all keys of a proof", async () => {
    await reopen();
    const feeCollector = chain.genesis.params.feeCollector;
    const slots = (count: number) =>
      Array.from({ length: count }, (_, index) =>
        bytesToHex(Buffer.from(index.toString(16).padStart(64, "0"), "hex")),
      ) as Hash32[];
    const { signal } = new AbortController();
    const cost = async (count: number) => {
      bytesRead = 0;
      await chain.view.proof(feeCollector, slots(count), 1, signal);
      return bytesRead;
    };
    const one = await cost(1);
    expect(await cost(200)).toBeLessThan(one * 4);
  });

  it("leave no page and no entry of the log index behind when they are pruned", async () => {
    await reopen();
    const { database, blocks } = chain.stores;
    const stores = { database, blocks, consensus: new ConsensusStore(database) };
    const heightsOf = async (space: KeySpace, at: (key: Buffer) => number) => {
      const heights = new Set<number>();
      const range = { from: storeKey(space), to: storeKey(space, Buffer.alloc(80, 0xff)) };
      for await (const key of database.keys(range)) heights.add(readHeight(key, at(key)));
      return [...heights].toSorted((left, right) => left - right);
    };
    const logHeights = () => heightsOf("log", (key) => key.length - 8);
    expect(await logHeights()).toEqual([2, 3, 4, 5, 6]);
    const deletions = await blockDeletions(stores, 3, async () => undefined);
    await database.write(deletions, { durable: true });
    expect(await logHeights()).toEqual([2, 4, 5, 6]);
    for (const space of ["hashPage", "transactionPage", "receiptPage", "journalPage"] as const) {
      expect([space, await heightsOf(space, () => 1)]).toEqual([space, [1, 2, 4, 5, 6]]);
    }
  });
});
