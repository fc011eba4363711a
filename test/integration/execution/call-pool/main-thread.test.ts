/** What workers' jobs cost the main thread, and what it does meanwhile. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { SLICE_MS } from "../../../../runtime/process/main-thread.js";
import { endlessSignal, OWN_WORK } from "../../../../runtime/process/work-owner.js";
import { EndlessWork, spin } from "../../../helpers/effort/endless-work.js";
import { until } from "../../../helpers/until.js";
import { CallBench, CALLS, endless, receiver, request, signal } from "./call-bench.js";

/** Works of an owner that a worker does not wait for. */
const COMPETING = 150;

describe("call pool", () => {
  let bench: CallBench;

  beforeAll(async () => {
    bench = await CallBench.open();
  });
  afterAll(() => bench.close());

  it("ends a call that burns its gas, without holding up the main thread", async () => {
    // Compute units end every call on this chain before its time does: here there are many.
    const params = { ...bench.chain.genesis.params, maxTransactionComputeNs: 10 ** 15 };
    const pool = bench.open({ timeoutMs: 1_500, gasCap: 10n ** 15n, params });
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

  it("hands a worker a full block, and reads its accounts, with turns in between", async () => {
    const height = await bench.mineFull();
    let [reading, mostReads] = [0, 0];
    const pool = bench.open({
      stateReaderAt: (at) => {
        const reader = bench.chain.stores.state.readerAt(at);
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
    const height = await bench.mineFull();
    const others = new EndlessWork();
    const reads: number[] = [];
    const pool = bench.open({
      stateReaderAt: (at) => {
        const reader = bench.chain.stores.state.readerAt(at);
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
