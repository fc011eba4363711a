/** Batches: what is gathered, in which order, and who hears of a fault. */
import { describe, expect, it } from "@jest/globals";
import { Batcher } from "../../../../runtime/process/batcher.js";
import { createGate } from "../../../helpers/gate.js";

describe("a batcher", () => {
  it("bounds a batch, but never splits a call", async () => {
    const batches: number[][] = [];
    const batcher = new Batcher<number, number>({
      run: async (items) => {
        batches.push([...items]);
        return items.map((item) => item * 10);
      },
      maxBatchItems: 3,
    });
    const calls = [[1, 2], [3], [4], [5, 6, 7, 8, 9]].map((items) => batcher.add(items));
    expect(await Promise.all(calls)).toEqual([[10, 20], [30], [40], [50, 60, 70, 80, 90]]);
    expect(batches).toEqual([[1, 2, 3], [4], [5, 6, 7, 8, 9]]);
    await batcher.idle();
  });

  it("passes a fault to its own callers and goes on", async () => {
    const batcher = new Batcher<number, number>({
      run: async (items) => {
        if (items.includes(1)) throw new Error("first batch");
        return items;
      },
      maxBatchItems: 1,
    });
    const [first, second] = await Promise.allSettled([batcher.add([1]), batcher.add([2])]);
    expect(first).toMatchObject({ status: "rejected", reason: new Error("first batch") });
    expect(second).toEqual({ status: "fulfilled", value: [2] });
  });

  it("passes a fault on to those who wait where it is as much theirs, and goes on", async () => {
    const gate = createGate();
    const batches: number[][] = [];
    const batcher = new Batcher<number, number>({
      run: async (items) => {
        batches.push([...items]);
        if (!items.includes(1)) return items;
        await gate.opened;
        throw new Error("nobody there");
      },
      maxBatchItems: 1,
      endsWaiting: (error) => error instanceof Error && error.message === "nobody there",
    });
    const calls = [batcher.add([1]), batcher.add([2]), batcher.add([3])];
    while (batches.length === 0) await new Promise(setImmediate);
    gate.open();
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual([
      "rejected",
      "rejected",
      "rejected",
    ]);
    await batcher.idle();
    expect(batches).toEqual([[1]]);
    expect(await batcher.addOne(4)).toBe(4);
    expect(batches).toEqual([[1], [4]]);
  });

  it("gathers before a batch that follows another at once, and not before one behind a rest", async () => {
    const gate = createGate();
    const gathering = new AbortController();
    const batches: number[][] = [];
    const batcher = new Batcher<number, number>({
      run: async (items) => {
        batches.push([...items]);
        if (items.includes(1)) await gate.opened;
        return items;
      },
      maxBatchItems: 3,
      // Only the signal ends the wait.
      gather: { waitMs: 86_400_000, signal: gathering.signal },
    });
    const first = batcher.addOne(1);
    while (batches.length === 0) await new Promise(setImmediate);
    const meanwhile = batcher.addOne(2);
    gate.open();
    await first;
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    expect(batches).toEqual([[1]]);
    const shared = [meanwhile, batcher.addOne(3), batcher.addOne(4)];
    gathering.abort();
    expect(await Promise.all(shared)).toEqual([2, 3, 4]);
    expect(batches).toEqual([[1], [2, 3, 4]]);
    await batcher.idle();
  });

  it("does not gather where a batch is full", async () => {
    const batches: number[][] = [];
    const batcher = new Batcher<number, number>({
      run: async (items) => {
        batches.push([...items]);
        return items;
      },
      maxBatchItems: 2,
      gather: { waitMs: 86_400_000, signal: new AbortController().signal },
    });
    const answers = [1, 2, 3, 4].map((item) => batcher.addOne(item));
    expect(await Promise.all(answers)).toEqual([1, 2, 3, 4]);
    expect(batches).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });

  it("refuses results that are not one per item", async () => {
    const batcher = new Batcher<number, number>({ run: async () => [], maxBatchItems: 5 });
    await expect(batcher.add([1])).rejects.toThrow("not one result per item");
  });

  it.each([1, 2])("runs at most %i at once, and what waits grows together", async (maxRunning) => {
    const gate = createGate();
    const sizes: number[] = [];
    let running = 0;
    let most = 0;
    const batcher = new Batcher<number, number>({
      run: async (items) => {
        sizes.push(items.length);
        most = Math.max(most, ++running);
        await gate.opened;
        running--;
        return items;
      },
      maxBatchItems: 4,
      maxRunning,
    });
    const answers = Array.from({ length: 10 }, (_, item) => batcher.addOne(item));
    while (sizes.length < maxRunning) await new Promise(setImmediate);
    expect(batcher.waitingCount).toBe(10 - 4 * maxRunning);
    gate.open();
    expect(await Promise.all(answers)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(sizes).toEqual([4, 4, 2]);
    expect(most).toBe(maxRunning);
    await batcher.idle();
  });
});
