/** The call workers as real threads over a real store. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { Wallet } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import { bytesToBigint, bytesToHex, hexToBytes, ZERO_HASH } from "../../../chain/hex.js";
import {
  CallPool,
  type CallPoolOptions,
  IN_PLACE_NS,
} from "../../../node/execution/calls/call-pool.js";
import type { CallError } from "../../../node/execution/calls/call-error.js";
import type { CallOptions, CallRequest } from "../../../node/execution/calls/call-port.js";
import { StoreError } from "../../../node/store/database.js";
import { createLogger, type Logger } from "../../../runtime/process/logger.js";
import { SLICE_MS } from "../../../runtime/process/main-thread.js";
import { endlessSignal, OWN_WORK } from "../../../runtime/process/work-owner.js";
import { EndlessWork, spin } from "../../helpers/effort/endless-work.js";
import { ExecutionChain, testGenesis } from "../../helpers/chains/execution-chain.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { until } from "../../helpers/until.js";

const wallet = new Wallet(`0x${"11".repeat(32)}`);
const sender = parseAddress(wallet.address);
const PRICE = 25_000_000n;
/** Counts its calls in slot 0 and returns the count; with calldata it runs for ever. */
const COUNTER = "366012575f54600101805f525f5560205ff35b601256";
const CALLS = { tracer: "callTracer", onlyTopCall: false, withLog: false } as const;
const signal = new AbortController().signal;
/** Works of an owner that a worker does not wait for. */
const COMPETING = 150;

/** Steps behind the usual priority of each thread of this process. */
function priorities(): Map<string, number> {
  const folder = "/proc/self/task";
  const threads = fs.readdirSync(folder).map((thread) => {
    // Behind the name, which may hold spaces: proc_pid_stat(5), field 19.
    const fields = fs.readFileSync(`${folder}/${thread}/stat`, "latin1").split(") ")[1] ?? "";
    return [thread, Number(fields.split(" ")[16])] as const;
  });
  return new Map(threads);
}

describe("call pool", () => {
  let chain: ExecutionChain;
  let workerUrl: URL;
  const counter = contractAddressOf(sender, 0n);
  const pools: CallPool[] = [];

  function open(changes: Partial<CallPoolOptions> = {}): CallPool {
    const pool = new CallPool({
      view: chain.view,
      stateReaderAt: (height) => chain.stores.state.readerAt(height),
      chainId: chain.genesis.evmChainId,
      params: chain.genesis.params,
      workerCount: 1,
      gasCap: 50_000_000n,
      timeoutMs: 20_000,
      log: createLogger({ component: "test", level: "silent" }),
      workerUrl,
      inPlaceNs: 0,
      ...changes,
    });
    pools.push(pool);
    return pool;
  }

  const request = (changes: Partial<CallRequest> = {}): CallRequest => ({
    from: sender,
    to: counter,
    valueAtoken: 0n,
    gasPriceAtoken: 0n,
    gasLimit: undefined,
    data: new Uint8Array(0),
    accessList: [],
    ...changes,
  });
  const endless = (gasLimit = 10n ** 9n) => request({ data: Uint8Array.of(1), gasLimit });

  /** Workers that can be made or not: what is not a file is refused at once, as a thread that there is not. */
  function scarceWorkers() {
    const url = new URL(workerUrl);
    const workers = { url, areThere: true, lookCount: 0 };
    Object.defineProperty(url, "protocol", {
      get() {
        workers.lookCount += 1;
        return workers.areThere ? "file:" : "http:";
      },
    });
    return workers;
  }

  async function sign(nonce: number, to: string | null, data = "0x") {
    const fields = { type: 0, chainId: 6940, nonce, gasPrice: PRICE, gasLimit: 300_000n };
    return wallet.signTransaction({ ...fields, to, data });
  }

  const receiver = (index: number) => `0x${(index + 1_000).toString(16).padStart(40, "0")}`;

  /** A block with 300 transfers, each to another. @returns its height */
  async function mineFull(): Promise<number> {
    const nonce = Number((await chain.view.account(sender, chain.view.head().height))?.nonce);
    const raws = Array.from({ length: 300 }, (_, index) => sign(nonce + index, receiver(index)));
    await chain.mine(await Promise.all(raws));
    return chain.view.head().height;
  }

  beforeAll(async () => {
    const folder = await compiledFolder();
    workerUrl = pathToFileURL(path.join(folder, "node", "execution", "calls", "call-worker.js"));
    chain = await ExecutionChain.open(testGenesis(wallet.address));
    const size = (COUNTER.length / 2).toString(16);
    await chain.mine([await sign(0, null, `0x60${size}600a5f3960${size}5ff3${COUNTER}`)]);
    await chain.mine([await sign(1, counter), await sign(2, counter)]);
    await chain.mine([await sign(3, counter)]);
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.close()));
    await chain.close();
  });

  it("calls at the head and at an older height", async () => {
    const pool = open();
    const countAt = async (height: number) => {
      const result = await pool.call(request(), height, { signal });
      return result.outcome === "success" && bytesToBigint(result.returnData);
    };
    expect([await countAt(3), await countAt(2), await countAt(1)]).toEqual([4n, 3n, 1n]);
    await expect(pool.call(request(), 4, { signal })).rejects.toMatchObject({
      code: "HEADER_NOT_FOUND",
    });
  });

  it("has workers behind the node's own threads, and not behind everybody for ever", async () => {
    if (process.platform !== "linux") return; // Elsewhere a thread has no priority of its own.
    const before = priorities();
    await open().call(request(), 3, { signal });
    const own = os.getPriority();
    const behind = [...priorities()].filter(([thread]) => !before.has(thread));
    const lowest = os.constants.priority.PRIORITY_LOW;
    expect(behind.map(([, steps]) => steps)).toContain(Math.min(own + 10, lowest));
  });

  it("refuses a call, and goes on, where no thread can be started", async () => {
    // What Node does not take for a file it refuses at once, as it does a thread that there is not.
    const pool = open({ workerUrl: new URL("http://127.0.0.1/worker.js") });
    for (let count = 0; count < 2; count++) {
      await expect(pool.call(request(), 3, { signal })).rejects.toMatchObject({
        code: "CALL_WORKER_FAILED",
      });
    }
  });

  it("leaves to the other workers what waits where one cannot be made", async () => {
    const workers = scarceWorkers();
    const errors = jest.fn();
    const quiet = createLogger({ component: "test", level: "silent" });
    const log = Object.assign(Object.create(quiet) as Logger, { error: errors });
    const held = [0, 1].map(() => Promise.withResolvers<void>());
    const asking = new Set<object>();
    let [phase, isBroken] = [0, false];
    const pool = open({
      workerCount: 2,
      workerUrl: workers.url,
      restartMs: 600_000,
      log,
      stateReaderAt: (height) => {
        const reader = chain.stores.state.readerAt(height);
        const job = {};
        const account = async (address: Address) => {
          asking.add(job);
          await held[phase]?.promise;
          return reader.account(address);
        };
        const broken = () => Promise.reject(new Error("disk on fire"));
        return { ...reader, account: isBroken ? broken : account };
      },
    });
    const calls = (count: number) =>
      Array.from({ length: count }, () => pool.call(request(), 3, { signal }));
    const both = calls(2);
    await until(() => asking.size === 2, { timeoutMs: 60_000, what: "two workers" });
    held[0]?.resolve();
    await Promise.all(both);

    // One of them is given up, and none takes its place.
    phase = 1;
    [workers.areThere, isBroken] = [false, true];
    const [broken] = calls(1);
    isBroken = false;
    const waiting = Promise.allSettled(calls(10));
    await expect(broken).rejects.toThrow("disk on fire");
    const { lookCount } = workers;
    for (let turn = 0; turn < 50; turn += 1) await nextTurn();
    held[1]?.resolve();
    const outcomes = new Set((await waiting).map(({ status }) => status));
    expect([...outcomes]).toEqual(["fulfilled"]);
    expect(workers.lookCount).toBe(lookCount);
    expect(errors).toHaveBeenCalledTimes(1);
  });

  it("makes a worker that could not be made as soon as it can be", async () => {
    const workers = scarceWorkers();
    workers.areThere = false;
    const pool = open({ workerUrl: workers.url, restartMs: 20 });
    await expect(pool.call(request(), 3, { signal })).rejects.toMatchObject({
      code: "CALL_WORKER_FAILED",
    });
    workers.areThere = true;
    expect(await pool.call(request(), 3, { signal })).toMatchObject({ outcome: "success" });
  });

  it("refuses all that wait where no worker can be made", async () => {
    const pool = open({ workerCount: 2, workerUrl: new URL("http://127.0.0.1/worker.js") });
    const calls = Array.from({ length: 5 }, () => pool.call(request(), 3, { signal }));
    for (const refused of await Promise.allSettled(calls)) {
      expect(refused).toMatchObject({ reason: { code: "CALL_WORKER_FAILED" } });
    }
  });

  it("executes small calls of the head on the spot, and leaves all others to the workers", async () => {
    const nobody = open({ inPlaceNs: IN_PLACE_NS, workerUrl: pathToFileURL("/no/worker.js") });
    await expect(nobody.call(request(), 3, { signal })).resolves.toMatchObject({
      outcome: "success",
    });
    const balances = new Map([[sender, { balanceAtoken: 1n }]]);
    // All at once: each try to start the worker is a while behind the last one.
    const others: readonly (readonly [CallRequest, number, Partial<CallOptions>])[] = [
      [endless(), 3, {}],
      [request({ data: new Uint8Array(5_000) }), 3, {}],
      [request(), 2, {}],
      [request(), 3, { overrides: balances }],
      [request(), 3, { blockOverrides: { height: 9 } }],
    ];
    const answers = others.map(([asked, height, options]) =>
      nobody.call(asked, height, { signal, ...options }),
    );
    for (const refused of await Promise.allSettled(answers)) {
      expect(refused).toMatchObject({ reason: { code: "CALL_WORKER_FAILED" } });
    }
  });

  it("gives the same answer on the spot as from a worker", async () => {
    const [here, there] = [open({ inPlaceNs: IN_PLACE_NS }), open()];
    const poor = parseAddress(`0x${"99".repeat(20)}`);
    const code = (hex: string) => ({ to: undefined, data: Buffer.from(hex, "hex") });
    const asked: readonly Partial<CallRequest>[] = [
      {},
      { from: poor, valueAtoken: 1n },
      { from: poor, gasPriceAtoken: PRICE },
      { gasPriceAtoken: PRICE },
      { gasLimit: 20_000n },
      { gasLimit: 21_100n },
      { to: poor, valueAtoken: 5n },
      code("60016000fd"),
      code("fe"),
      code("4360005260206000f3"),
      code("60024340600052602060 00f3".replace(" ", "")),
      code("4760005247602052303160405260606000f3"),
      { to: parseAddress(`0x${"00".repeat(19)}04`), data: Uint8Array.of(1, 2, 3) },
      { to: parseAddress(`0x${"00".repeat(19)}01`), data: new Uint8Array(128) },
    ];
    for (const [index, changes] of asked.entries()) {
      const outcomes = [here, there].map((pool) =>
        pool.call(request(changes), 3, { signal }).catch((error: CallError) => ({
          code: error.code,
          message: error.message,
          details: error.details,
        })),
      );
      const [fast, slow] = await Promise.all(outcomes);
      expect({ index, ...fast }).toEqual({ index, ...slow });
    }
  });

  it("estimates payments to accounts without code on the spot, and leaves all else to the workers", async () => {
    const code = jest.fn<() => Uint8Array>();
    const nobody = open({
      inPlaceNs: IN_PLACE_NS,
      workerUrl: pathToFileURL("/no/worker.js"),
      stateReaderAt: (height) => ({ ...chain.stores.state.readerAt(height), code }),
    });
    const to = parseAddress(receiver(1));
    const transfer = request({ to, valueAtoken: 1n, gasPriceAtoken: PRICE });
    expect(await nobody.estimateGas(transfer, 3, { signal })).toEqual({
      outcome: "success",
      gas: 21_000n,
    });
    const identity = parseAddress(`0x${"00".repeat(19)}04`);
    const balances = new Map([[sender, { balanceAtoken: 1n }]]);
    const others: readonly (readonly [CallRequest, number, Partial<CallOptions>])[] = [
      [request(), 3, {}],
      [request({ to: undefined }), 3, {}],
      [request({ to: identity }), 3, {}],
      [request({ to, data: Uint8Array.of(1) }), 3, {}],
      [request({ to, accessList: [{ address: to, storageKeys: [] }] }), 3, {}],
      [transfer, 2, {}],
      [transfer, 3, { overrides: balances }],
      [transfer, 3, { blockOverrides: { height: 9 } }],
    ];
    const answers = others.map(([asked, height, options]) =>
      nobody.estimateGas(asked, height, { signal, ...options }),
    );
    for (const [index, refused] of (await Promise.allSettled(answers)).entries()) {
      expect({ index, ...refused }).toMatchObject({ reason: { code: "CALL_WORKER_FAILED" } });
    }
    expect(code).not.toHaveBeenCalled();
  });

  it("gives the same estimate on the spot as from a worker", async () => {
    const [here, there] = [open({ inPlaceNs: IN_PLACE_NS }), open()];
    const poor = parseAddress(`0x${"99".repeat(20)}`);
    const to = parseAddress(receiver(2));
    const payments: readonly Partial<CallRequest>[] = [
      {},
      { valueAtoken: 1n },
      { to: sender, valueAtoken: 1n },
      { valueAtoken: 1n, gasPriceAtoken: PRICE },
      { gasPriceAtoken: PRICE, gasLimit: 20_999n },
      { gasPriceAtoken: PRICE, gasLimit: 21_000n },
      { gasLimit: 1n },
      { from: poor },
      { from: poor, valueAtoken: 1n },
      { from: poor, gasPriceAtoken: PRICE },
      { from: poor, valueAtoken: 1n, gasPriceAtoken: PRICE },
      { valueAtoken: 2n ** 255n },
      { valueAtoken: 2n ** 255n, gasPriceAtoken: PRICE },
      { gasPriceAtoken: 2n ** 200n },
    ].map((changes) => ({ to, ...changes }));
    for (const [index, changes] of payments.entries()) {
      const outcomes = [here, there].map((pool) =>
        pool.estimateGas(request(changes), 3, { signal }).catch((error: CallError) => ({
          code: error.code,
          message: error.message,
          details: error.details,
        })),
      );
      const [fast, slow] = await Promise.all(outcomes);
      expect({ index, ...fast }).toEqual({ index, ...slow });
    }
  });

  it("simulates blocks on a state of the past, each on the one before", async () => {
    const pool = open();
    const json = await pool.simulate(
      {
        blocks: [
          { blockOverrides: {}, overrides: new Map(), calls: [request(), request()] },
          { blockOverrides: {}, overrides: new Map(), calls: [request()] },
        ],
        traceTransfers: false,
        validation: true,
        returnFullTransactions: true,
      },
      2,
      { signal },
    );
    // Written by the worker as well: tens of thousands of logs would take as long.
    const simulated = JSON.parse(Buffer.from(json).toString("utf8"));
    const counts = simulated.map(({ calls }: { calls: { returnData: string }[] }) =>
      calls.map(({ returnData }) => Number(returnData)),
    );
    expect(counts).toEqual([[3, 4], [5]]);
    const [first, second] = simulated;
    expect(first).toMatchObject({ number: "0x3", parentHash: chain.view.block(2)?.block.hash });
    expect(second).toMatchObject({ number: "0x4", parentHash: first.hash });
    expect(first.transactions).toMatchObject([{ nonce: "0x3" }, { nonce: "0x4" }]);
  });

  it("estimates enough for the next transaction", async () => {
    const estimate = await open().estimateGas(request(), 3, { signal });
    if (estimate.outcome !== "success") throw new Error(estimate.outcome);
    const fields = { type: 0, chainId: 6940, nonce: 4, gasPrice: PRICE, to: counter };
    const raw = await wallet.signTransaction({ ...fields, gasLimit: estimate.gas });
    const { executed } = await chain.execute([raw]);
    expect(executed.committed.receipts[0]?.status).toBe(1);
  });

  it("traces mined blocks with the gas of their receipts", async () => {
    const pool = open();
    const traces = await pool.traceBlock(2, undefined, CALLS, { signal });
    const mined = chain.view.block(2);
    // Their texts are written by the worker: the main thread would take a fifth of a second for one.
    const read = traces.map(({ transactionHash, json }) => {
      return { transactionHash, result: JSON.parse(Buffer.from(json).toString("utf8")) };
    });
    expect(read).toMatchObject(
      (mined?.receipts ?? []).map(({ gasUsed }, index) => ({
        transactionHash: mined?.block.transactions[index]?.tx.hash,
        result: { gasUsed: `0x${gasUsed.toString(16)}`, output: `0x${"0".repeat(63)}${index + 1}` },
      })),
    );
    expect(await pool.traceBlock(2, 1, CALLS, { signal })).toEqual([traces[1]]);
    const one = await pool.traceCall(request(), 3, CALLS, { signal });
    expect(JSON.parse(Buffer.from(one).toString("utf8"))).toMatchObject({ type: "CALL" });
    expect(await pool.traceBlock(0, undefined, CALLS, { signal })).toEqual([]);
  });

  it("ends a call that burns its gas, without holding up the main thread", async () => {
    // Compute units end every call on this chain before its time does: here there are many.
    const params = { ...chain.genesis.params, maxTransactionComputeNs: 10 ** 15 };
    const pool = open({ timeoutMs: 1_500, gasCap: 10n ** 15n, params });
    const isAnswered = () =>
      pool.call(request(), 3, { signal }).then(
        ({ outcome }) => outcome === "success",
        () => false,
      );
    await until(isAnswered, { timeoutMs: 60_000, what: "an answer in time" });
    const order: string[] = [];
    const burning = pool
      .call(endless(10n ** 15n), 3, { signal })
      .finally(() => order.push("burnt"));
    const after = isAnswered();
    burning.catch(() => undefined);
    // A call on this thread would have ended before its next turn.
    await nextTurn();
    await nextTurn();
    order.push("turns");
    await expect(burning).rejects.toMatchObject({ code: "CALL_TIMEOUT" });
    expect(order).toEqual(["turns", "burnt"]);
    // Where the machine is busy even this may take longer than a call may.
    if (!(await after)) await until(isAnswered, { timeoutMs: 60_000, what: "a call after it" });
  });

  it("drops waiting jobs and ends running ones when their callers leave", async () => {
    const pool = open({ gasCap: 10n ** 12n });
    await pool.call(request(), 3, { signal });
    const running = new AbortController();
    const waiting = new AbortController();
    const burning = pool.call(endless(), 3, { signal: running.signal });
    const queued = pool.call(request(), 3, { signal: waiting.signal });
    const last = pool.call(request(), 3, { signal });
    waiting.abort(new Error("left the queue"));
    await expect(queued).rejects.toThrow("left the queue");
    running.abort(new Error("left"));
    await expect(burning).rejects.toThrow("left");
    expect(await last).toMatchObject({ outcome: "success" });
    await expect(pool.call(request(), 3, { signal: running.signal })).rejects.toThrow("left");
  });

  it("lets the first job of a worker come to its end though its caller left", async () => {
    const channel = new BroadcastChannel(`call-worker-${randomUUID()}`);
    let startCount = 0;
    channel.addEventListener("message", () => (startCount += 1));
    const told = `new BroadcastChannel("${channel.name}").postMessage("started")`;
    const [held, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const pool = open({
      abandonedMs: 1,
      workerUrl: new URL(`data:text/javascript,${told};await import("${workerUrl.href}")`),
      stateReaderAt: (height) => {
        const reader = chain.stores.state.readerAt(height);
        const account = async (address: Address) => {
          asked.resolve();
          await held.promise;
          return reader.account(address);
        };
        return { ...reader, account };
      },
    });
    const leaving = new AbortController();
    const first = pool.call(request(), 3, { signal: leaving.signal });
    await asked.promise;
    leaving.abort(new Error("left"));
    await expect(first).rejects.toThrow("left");
    const second = pool.call(request(), 3, { signal });
    // Behind the moment that a warm one would have had.
    await pause(1);
    held.resolve();
    expect(await second).toMatchObject({ outcome: "success" });
    channel.close();
    expect(startCount).toBe(1);
  });

  it("refuses jobs beyond the queue's bound", async () => {
    const pool = open({ maxQueuedJobs: 1, gasCap: 10n ** 12n });
    await pool.call(request(), 3, { signal });
    const leave = new AbortController();
    const jobs = [0, 1].map(() => pool.call(endless(), 3, { signal: leave.signal }));
    const settled = Promise.allSettled(jobs);
    await expect(pool.call(request(), 3, { signal })).rejects.toMatchObject({
      code: "CALL_QUEUE_FULL",
      retriable: true,
    });
    leave.abort();
    await settled;
  });

  it("does an estimate behind the one job that runs, however many calls wait", async () => {
    const pool = open();
    await pool.call(request(), 3, { signal });
    const order: string[] = [];
    const noted = (name: string, job: Promise<unknown>) => job.then(() => order.push(name));
    const calls = Array.from({ length: 50 }, () =>
      noted("call", pool.call(request(), 3, { signal })),
    );
    const estimates = Array.from({ length: 2 }, () =>
      noted("estimate", pool.estimateGas(request(), 3, { signal })),
    );
    await Promise.all([...calls, ...estimates]);
    // By turns: nor do calls wait for an endless stream of estimates.
    expect(order.slice(0, 5)).toEqual(["call", "estimate", "call", "estimate", "call"]);
  });

  it("has each client wait behind its own jobs", async () => {
    const pool = open();
    await pool.call(request(), 3, { signal });
    const order: string[] = [];
    const estimate = (client: string) =>
      pool.estimateGas(request(), 3, { signal, client }).then(() => order.push(client));
    const jobs = Array.from({ length: 20 }, () => estimate("192.0.2.1"));
    jobs.push(...["127.0.0.1", "127.0.0.1", "192.0.2.2"].map(estimate));
    await Promise.all(jobs);
    const [many, own, other] = ["192.0.2.1", "127.0.0.1", "192.0.2.2"];
    expect(order.slice(0, 6)).toEqual([many, many, own, other, many, own]);
  });

  it("refuses the last of who has most waiting where one more is too many", async () => {
    const params = { ...chain.genesis.params, maxTransactionComputeNs: 10 ** 15 };
    const pool = open({ maxQueuedJobs: 3, gasCap: 10n ** 15n, params });
    await pool.call(request(), 3, { signal });
    const leave = new AbortController();
    const refused: number[] = [];
    let count = 0;
    const ask = (client: string) => {
      const place = count++;
      return pool
        .call(endless(10n ** 15n), 3, { signal: leave.signal, client })
        .catch((error: CallError) => error.code === "CALL_QUEUE_FULL" && refused.push(place));
    };
    const [many, own] = ["192.0.2.1", "127.0.0.1"];
    // One runs, and three wait.
    const jobs = [many, many, many, many].map(ask);
    const estimate = pool.estimateGas(request(), 3, { signal, client: own });
    jobs.push(ask(many), ask(own));
    for (let turn = 0; turn < 50; turn += 1) await nextTurn();
    expect(refused).toEqual([3, 4, 2]);
    leave.abort();
    await Promise.all(jobs);
    expect(await estimate).toMatchObject({ outcome: "success" });
  });

  it("rejects the job whose state cannot be read, and goes on", async () => {
    let isBroken = true;
    const pool = open({
      stateReaderAt: (height) => {
        const reader = chain.stores.state.readerAt(height);
        const account = () => Promise.reject(new Error("disk on fire"));
        return isBroken ? { ...reader, account } : reader;
      },
    });
    await expect(pool.call(request(), 3, { signal })).rejects.toThrow("disk on fire");
    isBroken = false;
    expect(await pool.call(request(), 3, { signal })).toMatchObject({ outcome: "success" });
  });

  it("shows no hash where a client's number reaches back to blocks that are gone", async () => {
    const { view } = chain;
    const head = 1_000;
    // What is stored is the third block; of hashes there are those that its own code would see.
    const pruned: CallPoolOptions["view"] = {
      head: () => view.head(),
      outline: () => view.outline(3),
      pages: (height) => view.pages(height),
      cosmosTransaction: (height, index) => view.cosmosTransaction(height, index),
      blockHash: (height) => {
        if (height < keptFrom) throw new StoreError("HISTORY_PRUNED", "pruned");
        return view.blockHash(3);
      },
      supply: () => view.supply(3),
    };
    let keptFrom = head - 256;
    const workers = scarceWorkers();
    const pool = open({
      view: pruned,
      stateReaderAt: () => chain.stores.state.readerAt(3),
      workerUrl: workers.url,
    });
    /** Creation code that returns the hash of the block before: PUSH1 1, NUMBER, SUB, BLOCKHASH. */
    const asked = request({ to: undefined, data: hexToBytes("0x60014303405f5260205ff3") });
    const hashBefore = async (height: number) => {
      const result = await pool.call(asked, head, { signal, blockOverrides: { height } });
      return result.outcome === "success" ? bytesToHex(result.returnData) : result;
    };
    const { hash } = view.outline(3) ?? {};
    expect(await hashBefore(keptFrom + 1)).toBe(hash);
    const startCount = workers.lookCount;
    expect(await hashBefore(keptFrom)).toBe(ZERO_HASH);
    const options = { signal, blockOverrides: { height: 2 } };
    const trace = JSON.parse(
      Buffer.from(await pool.traceCall(asked, head, CALLS, options)).toString("utf8"),
    );
    expect(trace).toMatchObject({ output: ZERO_HASH });
    expect(await pool.estimateGas(asked, head, options)).toMatchObject({ outcome: "success" });
    expect(workers.lookCount).toBe(startCount);

    // The block itself went while its call was on its way: a zero would be no answer of its code.
    keptFrom = head;
    await expect(hashBefore(head)).rejects.toMatchObject({ code: "HISTORY_PRUNED" });
  });

  it("rejects jobs when the worker does not start", async () => {
    const broken = new URL("data:text/javascript,throw new Error('broken')");
    const pool = open({ workerUrl: broken });
    await expect(pool.call(request(), 3, { signal })).rejects.toMatchObject({
      code: "CALL_WORKER_FAILED",
    });
  });

  it("reads the blocks of as many traces as there are workers, and the others' in their turn", async () => {
    let readCount = 0;
    const { view } = chain;
    const pages = (height: number) => {
      readCount += 1;
      return view.pages(height);
    };
    const counted: CallPoolOptions["view"] = {
      head: () => view.head(),
      outline: (height) => view.outline(height),
      pages,
      cosmosTransaction: (height, index) => view.cosmosTransaction(height, index),
      blockHash: (height) => view.blockHash(height),
      supply: (height) => view.supply(height),
    };
    const pool = open({ view: counted, gasCap: 10n ** 12n, maxQueuedJobs: 40 });
    await pool.call(request(), 3, { signal });
    const [burning, leaving] = [new AbortController(), new AbortController()];
    const burnt = pool.call(endless(), 3, { signal: burning.signal }).catch(() => "ended");
    const trace = (own: AbortSignal) => pool.traceBlock(2, undefined, CALLS, { signal: own });
    const traces = Array.from({ length: 10 }, () => trace(signal));
    const left = Array.from({ length: 20 }, () => trace(leaving.signal));
    for (let turn = 0; turn < 50; turn += 1) await nextTurn();
    expect(readCount).toBe(1);

    leaving.abort(new Error("left the queue"));
    for (const one of left) await expect(one).rejects.toThrow("left the queue");
    burning.abort();
    expect(await burnt).toBe("ended");
    for (const one of await Promise.all(traces)) expect(one).toHaveLength(2);
    expect(readCount).toBe(10);
  });

  it("refuses traces beyond the queue's bound", async () => {
    const pool = open({ maxQueuedJobs: 3, gasCap: 10n ** 12n });
    await pool.call(request(), 3, { signal });
    const leave = new AbortController();
    const burnt = pool.call(endless(), 3, { signal: leave.signal });
    const trace = () => pool.traceBlock(2, undefined, CALLS, { signal: leave.signal });
    const settled = Promise.allSettled([burnt, ...Array.from({ length: 4 }, trace)]);
    await expect(trace()).rejects.toMatchObject({ code: "CALL_QUEUE_FULL", retriable: true });
    leave.abort();
    await settled;
  });

  it("has clients take turns at traces of blocks, and refuses the last of who has most waiting", async () => {
    const pool = open({ gasCap: 10n ** 12n, maxQueuedJobs: 20 });
    await pool.call(request(), 3, { signal });
    const burning = new AbortController();
    const burnt = pool.call(endless(), 3, { signal: burning.signal }).catch(() => "ended");
    const order: string[] = [];
    const trace = (client: string) =>
      pool.traceBlock(2, undefined, CALLS, { signal, client }).then(() => order.push(client));
    const [many, own] = ["192.0.2.1", "127.0.0.1"];
    // One has its turn and waits for the worker, and twenty wait for theirs.
    const traces = Array.from({ length: 21 }, () => trace(many));
    const refused = expect(traces.at(-1)).rejects.toMatchObject({ code: "CALL_QUEUE_FULL" });
    const other = trace(own);
    await refused;
    burning.abort();
    await Promise.all([burnt, other, ...traces.slice(0, -1)]);
    expect(order.slice(0, 4)).toEqual([many, many, own, many]);
    expect(order).toHaveLength(21);
  });

  it("ends at once and rejects what is open", async () => {
    const pool = open({ gasCap: 10n ** 12n });
    await pool.call(request(), 3, { signal });
    const jobs = [pool.call(endless(), 3, { signal }), pool.call(request(), 3, { signal })];
    const settled = Promise.allSettled(jobs);
    await pool.close();
    for (const result of await settled) {
      expect(result).toMatchObject({ reason: { code: "CALL_POOL_CLOSED" } });
    }
    await expect(pool.call(request(), 3, { signal })).rejects.toMatchObject({
      code: "CALL_POOL_CLOSED",
    });
  });

  it("reads the state of its height while the chain moves on", async () => {
    const pool = open({ gasCap: 10n ** 12n });
    const head = chain.view.head().height;
    const calls = Array.from({ length: 20 }, () => pool.call(request(), head, { signal }));
    await chain.mine([await sign(4, counter)]);
    const counts = (await Promise.all(calls)).map((result) =>
      result.outcome === "success" ? bytesToBigint(result.returnData) : 0n,
    );
    expect(new Set(counts)).toEqual(new Set([4n]));
    expect(chain.view.head().height).toBe(head + 1);
  });

  it("hands a worker a full block, and reads its accounts, with turns in between", async () => {
    const height = await mineFull();
    let [reading, mostReads] = [0, 0];
    const pool = open({
      stateReaderAt: (at) => {
        const reader = chain.stores.state.readerAt(at);
        const account = async (address: Address) => {
          mostReads = Math.max(mostReads, ++reading);
          await nextTurn();
          reading -= 1;
          return reader.account(address);
        };
        return { ...reader, account };
      },
    });
    await pool.call(request(), height, { signal });
    const posted = jest.spyOn(Worker.prototype, "postMessage");
    const traces = await pool.traceBlock(height, undefined, CALLS, { signal });
    const sizes = posted.mock.calls.map(
      ([{ transactions, work }]) => (transactions ?? work?.transactions ?? []).length,
    );
    posted.mockRestore();
    const targets = traces.map(({ json }) => JSON.parse(Buffer.from(json).toString("utf8")).to);
    expect(targets).toEqual(Array.from({ length: 300 }, (_, index) => receiver(index)));
    // Copied whole they were a tenth of a second of the main thread for a block of 12,000.
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(300);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(128);
    expect(mostReads).toBeGreaterThan(1);
    expect(mostReads).toBeLessThanOrEqual(64);
    // And what it answers comes as one piece.
    expect(new Set(traces.map(({ json }) => json.buffer)).size).toBe(1);
  });

  it("has a worker that holds a job wait behind nobody, what its client asks besides included", async () => {
    const height = await mineFull();
    const others = new EndlessWork();
    const reads: number[] = [];
    const pool = open({
      stateReaderAt: (at) => {
        const reader = chain.stores.state.readerAt(at);
        const account = (address: Address) => {
          reads.push(others.turns);
          return reader.account(address);
        };
        return { ...reader, account };
      },
    });
    await pool.call(request(), height, { signal });
    const client = "10.0.0.2";
    for (const owner of [{ client: "" }, OWN_WORK, { client }, { client, isOwn: true }]) {
      others.start(COMPETING, owner);
    }
    await others.begun();
    reads.length = 0;
    const posts: number[] = [];
    const post: Worker["postMessage"] = Reflect.get(Worker.prototype, "postMessage");
    const posted = jest.spyOn(Worker.prototype, "postMessage").mockImplementation(function (
      this: Worker,
      message,
    ) {
      posts.push(others.turns);
      spin(SLICE_MS);
      post.call(this, message, []);
    });
    try {
      const own = endlessSignal({ client: "10.0.0.3" });
      expect(await pool.traceBlock(height, undefined, CALLS, { signal: own, client })).toHaveLength(
        300,
      );
    } finally {
      posted.mockRestore();
      await others.end();
    }
    const lasting = (turns: readonly number[]) => (turns.at(-1) ?? 0) - (turns[0] ?? 0);
    for (const turns of [posts, reads.slice(0, 300)]) {
      expect(turns.length).toBeGreaterThan(2);
      expect(lasting(turns)).toBeLessThan(COMPETING);
    }
  });
});
