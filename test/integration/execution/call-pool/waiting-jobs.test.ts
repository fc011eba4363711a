/** Jobs that wait for a worker: whose turn it is, how many there may be, and callers that leave. */
import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import type { CallPoolOptions } from "../../../../node/execution/calls/call-pool.js";
import type { CallError } from "../../../../node/execution/calls/call-error.js";
import { CallBench, CALLS, endless, request, signal } from "./call-bench.js";

describe("call pool", () => {
  let bench: CallBench;

  beforeAll(async () => {
    bench = await CallBench.open();
  });
  afterAll(() => bench.close());

  it("drops waiting jobs and ends running ones when their callers leave", async () => {
    const pool = bench.open({ gasCap: 10n ** 12n });
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
    const pool = bench.open({
      abandonedMs: 1,
      workerUrl: new URL(`data:text/javascript,${told};await import("${bench.workerUrl.href}")`),
      stateReaderAt: (height) => {
        const reader = bench.chain.stores.state.readerAt(height);
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
    const pool = bench.open({ maxQueuedJobs: 1, gasCap: 10n ** 12n });
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
    const pool = bench.open();
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
    const pool = bench.open();
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
    const params = { ...bench.chain.genesis.params, maxTransactionComputeNs: 10 ** 15 };
    const pool = bench.open({ maxQueuedJobs: 3, gasCap: 10n ** 15n, params });
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

  it("reads the blocks of as many traces as there are workers, and the others' in their turn", async () => {
    let readCount = 0;
    const { view } = bench.chain;
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
    const pool = bench.open({ view: counted, gasCap: 10n ** 12n, maxQueuedJobs: 40 });
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
    const pool = bench.open({ maxQueuedJobs: 3, gasCap: 10n ** 12n });
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
    const pool = bench.open({ gasCap: 10n ** 12n, maxQueuedJobs: 20 });
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
});
