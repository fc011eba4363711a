/** A lower bound of stored replies: reached in parts, so that no batch and no pause is without one. */
import { afterEach, describe, expect, it, jest } from "@jest/globals";
import { journals } from "../../../helpers/chains/journal-chain.js";
import { closeAll, extend, newFolder, replyOf, start, startNode } from "./index-bench.js";

/** More than two parts. */
const BLOCKS = 2_500;

/** What a batch drops at most where it brings a single block, and the two records of each. */
const DROPPED_BLOCKS = 1_000;
const RECORDS = 2;

afterEach(async () => {
  jest.restoreAllMocks();
  await closeAll();
});

describe("an index whose bound of stored replies was lowered", () => {
  it("drops a part of them with each batch, until it is within the bound", async () => {
    const folder = newFolder();
    const blocks = journals();
    extend(blocks, BLOCKS);
    const node = await startNode({}, blocks);
    const first = start(node, { folder });
    await first.indexed(blocks.length - 1);
    const whole = await replyOf(first, 5);
    await first.rpc.close();
    const second = start(node, { folder, storedBlocksBytes: 5_000, cacheBytes: 1 });
    const { store } = second.index;
    await second.indexed(blocks.length - 1);
    const deletions: number[] = [];
    const commit = store.commit.bind(store);
    jest.spyOn(store, "commit").mockImplementation((writes, tip) => {
      deletions.push(writes.filter(({ value }) => value === undefined).length);
      return commit(writes, tip);
    });
    const left = () => store.storedBlocks().bytes;
    for (let round = 0; round < 4; round += 1) {
      extend(blocks, 1);
      await second.indexed(blocks.length - 1);
    }
    expect(Math.max(...deletions)).toBe(RECORDS * DROPPED_BLOCKS);
    expect(left()).toBeLessThanOrEqual(5_000);
    const { oldest } = store.storedBlocks();
    expect(store.record(oldest - 1)).toBeUndefined();
    expect(store.record(oldest)).toBeDefined();
    expect(await replyOf(second, 5)).toBe(whole);
  });
});
