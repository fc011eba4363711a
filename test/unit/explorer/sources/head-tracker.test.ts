/** A node that goes on, one that lost blocks, and one that is another one. */
import { describe, expect, it } from "@jest/globals";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { HeadTracker } from "../../../../explorer/sources/head-tracker.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";

/** Blocks 0 to `newest`; those from `from` on are of the chain with this name. */
function chainOf(name: string, newest: number, from = 0) {
  return Array.from({ length: newest + 1 }, (_, height) => ({
    height,
    hash: keccak256Hex(Buffer.from(`${height < from ? "first" : name} ${height}`)),
    timestampSeconds: 1_790_000_000 + height,
  }));
}

describe("the chain that pages are made of", () => {
  it("is another one where blocks that were seen are gone, and only there", async () => {
    let blocks = chainOf("first", 3);
    let asked = 0;
    const stopping = new AbortController();
    const chain = {
      head: async () => {
        asked += 1;
        return blocks[blocks.length - 1] ?? Promise.reject(new Error("no block"));
      },
      keptBlocks: async (heights: readonly number[]) =>
        heights.flatMap((height) => blocks[height] ?? []),
    };
    const tracker = new HeadTracker({
      chain,
      wsUrl: "ws://127.0.0.1:1",
      log: silentLog,
      signal: stopping.signal,
      onHead: () => undefined,
    });
    tracker.start();
    const generationAt = async (next: ReturnType<typeof chainOf>) => {
      blocks = next;
      const before = asked;
      await until(() => asked >= before + 2, { timeoutMs: 10_000, what: "a look at the head" });
      expect(tracker.head?.height).toBe(next.length - 1);
      return tracker.generation;
    };
    expect(await generationAt(chainOf("first", 3))).toBe(0);
    expect(await generationAt(chainOf("first", 9))).toBe(0);
    // Blocks 8 and 9 are gone, and come again as others; each step is another chain than before.
    expect(await generationAt(chainOf("first", 7))).toBe(1);
    expect(await generationAt(chainOf("second", 12, 8))).toBe(1);
    expect(await generationAt(chainOf("third", 12, 8))).toBe(2);
    // Longer than what was seen, and not on it.
    expect(await generationAt(chainOf("fourth", 40, 8))).toBe(3);
    stopping.abort();
    await tracker.stop().catch(() => undefined);
  });
});
