/** Ranges of blocks as records: what is too large for them is JSON, which leaves large data out. */
import { describe, expect, it } from "@jest/globals";
import type { BlockRecordBytes } from "../../../../../chain/records/block-records.js";
import { RECORDS_VERSION } from "../../../../../chain/records/records-version.js";
import { blockRangeJson } from "../../../../../node/rpc/evm/json/block-range.js";
import type { ChainView } from "../../../../../node/view/chain-view.js";
import { turnsOf } from "../../../../helpers/effort/turns.js";
import { createTestNode } from "../fixture.js";

const context = { signal: new AbortController().signal, becameLarge: async () => undefined };
const MIB = 1024 * 1024;

const { chain } = createTestNode();
for (let block = 0; block < 3; block++) chain.add([]);

/** The chain, with a block whose pages have 17 MiB. */
function withLarge(large: number): ChainView {
  const records = (height: number): BlockRecordBytes => {
    const own = chain.records(height);
    const page = [1, 2, 3, 4].map(() => new Uint8Array(MIB / 4)) as never;
    return height === large ? { ...own, pages: Array.from({ length: 17 }, () => page) } : own;
  };
  return Object.assign(Object.create(chain) as ChainView, { records });
}

/** The chain, with a block of Cosmos transactions of a MiB each; how many of them were read. */
function withCosmos(block: number, count: number) {
  const read = { count: 0 };
  function* cosmos() {
    while (read.count < count) {
      read.count += 1;
      yield new Uint8Array(MIB);
    }
  }
  const records = (height: number): BlockRecordBytes => {
    const own = chain.records(height);
    return height === block ? { ...own, cosmos: cosmos() } : own;
  };
  return { view: Object.assign(Object.create(chain) as ChainView, { records }), read };
}

const wholeRange = { to: 3, maxBytes: 16 * MIB, recordsVersion: RECORDS_VERSION };

async function answer(view: ChainView, from: number) {
  const json = await blockRangeJson(view, { ...wholeRange, from }, context);
  const body = JSON.parse(Buffer.concat([...json.pieces()]).toString());
  return {
    kind: Object.keys(body)[0],
    count: Object.values<unknown[]>(body)[0]?.length,
    next: body.next,
  };
}

describe("a range as records", () => {
  it("ends before a block that is too large, which then comes as JSON with what is behind it", async () => {
    expect(await answer(withLarge(2), 0)).toEqual({ kind: "records", count: 2, next: "0x2" });
    expect(await answer(withLarge(2), 2)).toEqual({ kind: "blocks", count: 2, next: null });
    expect(await answer(withLarge(9), 0)).toEqual({ kind: "records", count: 4, next: null });
  });

  it("reads no more of a block's Cosmos transactions than fit", async () => {
    const { view, read } = withCosmos(2, 40);
    expect(await answer(view, 0)).toEqual({ kind: "records", count: 2, next: "0x2" });
    expect(read.count).toBe(16);
    expect(await answer(withCosmos(2, 2).view, 0)).toEqual({
      kind: "records",
      count: 4,
      next: null,
    });
  });

  it("gives others their turns, also where blocks are empty or of Cosmos transactions", async () => {
    const { chain: long } = createTestNode();
    for (let block = 0; block < 300; block++) long.add([]);
    const wanted = { ...wholeRange, from: 1, to: 300 };
    expect(await turnsOf(() => blockRangeJson(long, wanted, context))).toBeGreaterThan(100);
    const { view } = withCosmos(1, 14);
    const turns = await turnsOf(() => blockRangeJson(view, { ...wholeRange, from: 1 }, context));
    expect(turns).toBeGreaterThan(4);
  });
});
