import { describe, expect, it } from "@jest/globals";
import { readRuns } from "../../../deposit-watcher/reading/block-reader.js";
import type { BlockSource } from "../../../deposit-watcher/reading/block-source.js";
import type { DataBlock } from "../../../rpc-client/data-api/data-block.js";
import { createGate } from "../../helpers/gate.js";
import { leftBehind } from "../../helpers/effort/signals.js";
import { blockAt, hashAt } from "./blocks.js";

const { signal } = new AbortController();
/** Answers out of order, and records how many reads are open at once. */
function source(head: number, spoil: (block: DataBlock) => DataBlock = (good) => good) {
  const state = { open: 0, mostOpen: 0 };
  const reader: BlockSource = {
    async block(height) {
      state.open += 1;
      state.mostOpen = Math.max(state.mostOpen, state.open);
      for (let turn = 0; turn < (height * 7) % 5; turn += 1) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      state.open -= 1;
      return height > head ? undefined : spoil(blockAt(height));
    },
  };
  return { reader, state };
}

async function heights(reader: BlockSource, to: number, from = 0): Promise<number[]> {
  const read: number[] = [];
  const previous = from === 0 ? undefined : { height: from - 1, hash: hashAt(from - 1) };
  const range = { previous, genesisHash: hashAt(0), to, readsInFlight: 4, signal };
  for await (const run of readRuns(reader, range)) read.push(...run.map(({ height }) => height));
  return read;
}

const upTo = (to: number, from = 0) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe("reading blocks", () => {
  it("gives every block in order whatever order they arrive in, within the bound of reads", async () => {
    const { reader, state } = source(100);
    expect(await heights(reader, 40)).toEqual(upTo(40));
    expect(await heights(reader, 40, 17)).toEqual(upTo(40, 17));
    expect(state.mostOpen).toBe(4);
    expect(state.open).toBe(0);
  });

  it("leaves nothing behind at the signal of a watcher that polls for months", async () => {
    const before = leftBehind(signal);
    const { reader } = source(3);
    for (let round = 0; round < 20; round++) await heights(reader, 3);
    expect(leftBehind(signal)).toBe(before);
  });

  it("has fewer large blocks on their way", async () => {
    const { reader, state } = source(40, (good) => ({ ...good, sizeBytes: 8 * 1024 * 1024 }));
    const range = { previous: undefined, genesisHash: hashAt(0), to: 40, readsInFlight: 8, signal };
    const open: number[] = [];
    let count = 0;
    for await (const run of readRuns(reader, range)) {
      count += run.length;
      open.push(state.open);
    }
    expect(count).toBe(41);
    // The first ones are asked for before the size of a block is known.
    expect(state.mostOpen).toBeGreaterThan(3);
    expect(Math.max(...open.slice(3))).toBeLessThanOrEqual(3);
  });

  it("asks for no more while large ones are here that cannot be taken", async () => {
    const slow = createGate();
    let asked = 0;
    let askedMeanwhile = 0;
    const reader: BlockSource = {
      async block(height) {
        asked = Math.max(asked, height);
        if (height === 104) await slow.opened;
        return { ...blockAt(height), sizeBytes: height > 104 ? 1024 * 1024 : 1 };
      },
    };
    const range = { previous: undefined, genesisHash: hashAt(0), to: 400, readsInFlight: 192 };
    const read: number[] = [];
    for await (const run of readRuns(reader, { ...range, signal })) {
      read.push(...run.map(({ height }) => height));
      if (read.at(-1) === 103) {
        askedMeanwhile = asked;
        slow.open();
      }
    }
    expect(askedMeanwhile).toBe(199);
    expect(read).toEqual(upTo(400));
  });

  it("stops quietly where the source has no more yet", async () => {
    expect(await heights(source(12).reader, 40)).toEqual(upTo(12));
  });

  it.each([
    ["another parent", (good: DataBlock) => ({ ...good, parentHash: hashAt(99) })],
    ["another height", (good: DataBlock) => ({ ...good, height: good.height + 1 })],
  ])("finds an incident at a block with %s", async (_what, change) => {
    const { reader } = source(40, (good) => (good.height === 9 ? change(good) : good));
    const read: number[] = [];
    const range = { previous: undefined, genesisHash: hashAt(0), to: 40, readsInFlight: 4, signal };
    await expect(
      (async () => {
        for await (const run of readRuns(reader, range))
          read.push(...run.map((each) => each.height));
      })(),
    ).rejects.toMatchObject({ incident: { kind: "PARENT_MISMATCH" } });
    expect(read).toEqual(upTo(read.length - 1));
    expect(read.length).toBeLessThanOrEqual(9);
  });

  it("finds an incident at another genesis", async () => {
    const { reader } = source(3, (good) =>
      good.height === 0 ? { ...good, hash: hashAt(77), parentHash: hashAt(77) } : good,
    );
    await expect(heights(reader, 3)).rejects.toMatchObject({ incident: { kind: "HASH_CHANGED" } });
  });

  it("gives what was read before a fault, then the fault", async () => {
    const { reader } = source(40);
    const faulty: BlockSource = {
      block: (height, options) =>
        height === 6 ? Promise.reject(new Error("reset")) : reader.block(height, options),
    };
    const read: number[] = [];
    const range = { previous: undefined, genesisHash: hashAt(0), to: 40, readsInFlight: 4, signal };
    await expect(
      (async () => {
        for await (const run of readRuns(faulty, range))
          read.push(...run.map((each) => each.height));
      })(),
    ).rejects.toThrow("reset");
    expect(read).toEqual(upTo(5));
  });
});
