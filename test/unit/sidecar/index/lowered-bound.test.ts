/** A lower bound of stored replies, reached in parts; and replies that are made again. */
import { afterEach, describe, expect, it, jest } from "@jest/globals";
import { join } from "node:path";
import { heightBytes } from "../../../../chain/encoding/height-bytes.js";
import { indexKey } from "../../../../sidecar/index/key-spaces.js";
import { hashOf, journals } from "../../../helpers/chains/journal-chain.js";
import { putRaw } from "../../../helpers/raw-level.js";
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

  it("makes replies again as they were where they did not tell the signed hash yet", async () => {
    const folder = newFolder();
    const blocks = journals();
    const node = await startNode({}, blocks);
    const first = start(node, { folder });
    await first.indexed(2);
    expect(await replyOf(first, 2)).toContain("consensus_block_hash");
    await first.rpc.close();
    // As a release left it that knew nothing of the hash.
    const index = join(folder, "sidecar");
    await putRaw(index, indexKey("meta", Buffer.from("signedFrom")), undefined);
    for (const height of [1, 2]) {
      await putRaw(index, indexKey("block", heightBytes(height)), undefined);
    }
    extend(blocks, 1);
    Object.assign(blocks[3] ?? {}, { consensusBlockHash: hashOf("consensus header 3") });
    for (let turn = 0; turn < 2; turn += 1) {
      const later = start(node, { folder });
      await later.indexed(3);
      for (const height of [1, 2]) {
        expect(await replyOf(later, height)).not.toContain("consensus_block_hash");
      }
      expect(await replyOf(later, 3)).toContain("consensus_block_hash");
      await later.rpc.close();
    }
  });

  it("makes replies again as they were where the node did not tell the signed hash yet", async () => {
    const folder = newFolder();
    const blocks = journals();
    extend(blocks, 1);
    const node = await startNode({}, blocks);
    const first = start(node, { folder });
    await first.indexed(3);
    const heights = [0, 1, 2, 3];
    const given = await Promise.all(heights.map((height) => replyOf(first, height)));
    expect(given.map((reply) => reply.includes("consensus_block_hash"))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    await first.rpc.close();
    for (const height of heights) {
      const key = indexKey("block", heightBytes(height));
      await putRaw(join(folder, "sidecar"), key, undefined);
    }
    Object.assign(blocks[3] ?? {}, { consensusBlockHash: hashOf("consensus header 3") });
    const second = start(node, { folder });
    await second.indexed(3);
    for (const height of heights) {
      expect(await replyOf(second, height)).toBe(given[height]);
    }
  });
});
