/** Ranges of blocks as records: what is too large for them is JSON, which leaves large data out. */
import { describe, expect, it } from "@jest/globals";
import type { BlockRecordBytes } from "../../../../chain/records/block-records.js";
import { RECORDS_VERSION } from "../../../../chain/records/records-version.js";
import { blockRangeJson } from "../../../../node/rpc/evm/json/block-range.js";
import type { ChainView } from "../../../../node/view/chain-view.js";
import { createTestNode } from "./fixture.js";

const { signal } = new AbortController();
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

async function answer(view: ChainView, from: number) {
  const wanted = { from, to: 3, maxBytes: 16 * MIB, recordsVersion: RECORDS_VERSION };
  const json = await blockRangeJson(view, wanted, signal);
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
});
