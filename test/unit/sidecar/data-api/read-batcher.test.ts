/** Reads of many requests in few: who hears of a node that hangs, and how soon. */
import { describe, expect, it } from "@jest/globals";
import { NodeFault } from "../../../../rpc-client/errors.js";
import { ReadBatcher } from "../../../../sidecar/data-api/read-batcher.js";

/** A node whose batches are answered by hand. */
function manualNode() {
  const batches: {
    readonly queries: readonly number[];
    answer(): void;
    fail(code: "NODE_TIMEOUT" | "NODE_UNREACHABLE"): void;
  }[] = [];
  const reads = new ReadBatcher<number, { readonly value: number }>({
    keyOf: String,
    read: (queries) =>
      new Promise((resolve, reject) => {
        batches.push({
          queries,
          answer: () => resolve(queries.map((value) => ({ value }))),
          fail: (code) => reject(new NodeFault(code, "no answer", { retriable: true })),
        });
      }),
    isFinal: () => true,
    maxKept: 16,
  });
  const turns = async () => {
    for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  };
  return { batches, reads, turns };
}

describe("reads that wait for others", () => {
  it("are told that the node hangs with those, and do not wait for it a second time", async () => {
    const { batches, reads, turns } = manualNode();
    const asked: Promise<{ readonly value: number }>[] = [];
    for (const query of [1, 2, 3, 4]) {
      asked.push(Promise.resolve(reads.get(query)));
      await turns();
    }
    // Two are on their way, the others wait for one of them to end.
    expect(batches.map(({ queries }) => queries)).toEqual([[1], [2]]);
    const settled = Promise.allSettled(asked);
    batches[0]?.fail("NODE_TIMEOUT");
    await turns();
    batches[1]?.answer();
    await turns();
    expect(batches).toHaveLength(2);
    const hung = { status: "rejected", reason: expect.objectContaining({ code: "NODE_TIMEOUT" }) };
    expect(await settled).toEqual([hung, { status: "fulfilled", value: { value: 2 } }, hung, hung]);
    const again = reads.get(3);
    await turns();
    batches[2]?.answer();
    expect(await again).toEqual({ value: 3 });
  });

  it("are read all the same when only a connection broke", async () => {
    const { batches, reads, turns } = manualNode();
    const asked = [1, 2].map((query) => Promise.resolve(reads.get(query)));
    await turns();
    const late = Promise.resolve(reads.get(3));
    const settled = Promise.allSettled([...asked, late]);
    batches[0]?.fail("NODE_UNREACHABLE");
    await turns();
    batches[1]?.answer();
    await turns();
    expect((await settled).map(({ status }) => status)).toEqual([
      "rejected",
      "rejected",
      "fulfilled",
    ]);
  });
});
