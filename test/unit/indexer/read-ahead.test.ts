/** How many ranges are under way at a time: what a chain's blocks may hold is bounded by their number. */
import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { type Height, parseHash32 } from "../../../chain/hex.js";
import { prepareBatch } from "../../../indexer/ingest/read-ahead.js";
import type { BlockRange } from "../../../rpc-client/indexing/block-range.js";

const account = parseAddress(`0x${"11".repeat(20)}`);
const hash = parseHash32(`0x${"22".repeat(32)}`);
const before = { mintedAtoken: 0n, burnedAtoken: 0n };
const { signal } = new AbortController();

/** A range of one block with one log of so many bytes, and more behind it. */
function rangeAt(height: Height, logBytes: number): BlockRange {
  const transaction = {
    hash,
    index: 0,
    status: 1 as const,
    from: account,
    to: account,
    contractAddress: undefined,
    gasUsed: 0n,
    gasPriceAtoken: 0n,
    nonce: 0n,
    input: "0x" as const,
    inputSizeBytes: 0,
    changes: [],
    logs: [{ address: account, topics: [hash], data: `0x${"00".repeat(logBytes)}` as const }],
    valueAtoken: 0n,
    gasLimit: 0n,
    type: 0,
    sdkHash: hash,
  };
  const block = {
    hash,
    height,
    parentHash: hash,
    timestampMs: 0,
    transactions: [transaction],
    blockChanges: [],
    mintedAtoken: 0n,
    burnedAtoken: 0n,
    claims: [],
    proposer: account,
    gasUsed: 0n,
    gasLimit: 0n,
    sizeBytes: 1,
  };
  return { blocks: [block], next: height + 1, head: { height: 9, hash } };
}

/** A reader that notes what it is asked for; the block at `large` has 20 MB of logs. */
function readerWith(large: Height) {
  const asked: Height[] = [];
  const read = (from: Height) => {
    asked.push(from);
    return Promise.resolve(rangeAt(from, from === large ? 20_000_000 : 32));
  };
  return { asked, read };
}

/** Nothing more is asked for, however many turns the event loop makes. */
async function allIsStill(asked: readonly Height[]): Promise<void> {
  for (let still = 0, count = -1; still < 20; count = asked.length) {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    still = asked.length === count ? still + 1 : 0;
  }
}

describe("reading ahead", () => {
  it("has two batches behind the one that is written, and asks no further before one is taken", async () => {
    const { asked, read } = readerWith(-1);
    let taken = await prepareBatch(read, 0, before, signal);
    for (let height = 0; height < 5; height++) {
      await allIsStill(asked);
      // The next is made, the one behind it is read.
      expect(asked).toEqual([0, 1, 2, 3, 4, 5, 6].slice(0, height + 3));
      const following = await taken.next();
      if (following === undefined) throw new Error("nothing follows");
      expect(following.range.blocks[0]?.height).toBe(height + 1);
      taken = following;
    }
  });

  it("asks for nothing behind a range that is larger than answers are", async () => {
    const { asked, read } = readerWith(1);
    const first = await prepareBatch(read, 0, before, signal);
    const large = await first.next();
    expect(large?.range.blocks[0]?.height).toBe(1);
    expect(large?.next()).toBeUndefined();
    expect(asked).toEqual([0, 1]);
  });
});
