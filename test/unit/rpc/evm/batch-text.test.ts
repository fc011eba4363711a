/** Large batches are read as `JSON.parse` reads them, within bounds, and leave the thread to others. */
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "@jest/globals";
import * as fc from "fast-check";
import { parseBatchText } from "../../../../node/rpc/evm/batch-text.js";

const LIMITS = { entries: 1_000, entryBytes: 1_000_000, isCall: (entry: unknown) => entry !== 0 };

const read = (text: string, limits = LIMITS) => parseBatchText(Buffer.from(text), limits);

/** What `JSON.parse` makes of it. */
function expected(text: string): unknown {
  try {
    return { entries: JSON.parse(text) };
  } catch {
    return { fault: "malformed" };
  }
}

describe("the text of a batch", () => {
  it("is read as JSON.parse reads it", async () => {
    const texts = [
      "[]",
      " [ ] \n",
      "[1]",
      '[{"a":[1,2,{"b":"x,]}"}]}, "\\"]" ,null]',
      '["\\\\",{"\\\\\\"":1}]',
      '["é\u{1f600}"]',
      "[1,]",
      "[,1]",
      "[1,,2]",
      "[1",
      "[1]]",
      "[1] x",
      "[{]}",
      "[1}",
      '["a]',
      '["\\"]',
      "[[1],[2,[3]]]",
      "[1 2]",
      "[undefined]",
    ];
    for (const text of texts) expect([text, await read(text)]).toEqual([text, expected(text)]);
  });

  it("is read so for anything, whole or cut, with any byte changed", async () => {
    const seed = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20261120);
    console.log(`batch-text: seed ${seed} (CAUSEWAY_TEST_SEED)`);
    const damage = fc.record({ at: fc.nat(), by: fc.constantFrom(...'[]{},"\\ :1x'.split("")) });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue()), fc.option(damage), async (value, change) => {
        let text = JSON.stringify(value);
        if (change !== null) {
          // The first character says that it is a batch.
          const at = 1 + (change.at % Math.max(1, text.length - 1));
          text = text.slice(0, at) + change.by + text.slice(at + 1);
        }
        expect(await read(text)).toEqual(expected(text));
      }),
      { seed, numRuns: 2_000 },
    );
  });

  it("is refused for what is too much before more than its first call is read", async () => {
    const limits = { ...LIMITS, entries: 3, entryBytes: 10 };
    expect(await read("[1,2,3]", limits)).toEqual({ entries: [1, 2, 3] });
    expect(await read("[1,2,3,4,}", limits)).toEqual({ fault: "too many", firstCall: 1 });
    expect(await read("[0,2,x,4]", limits)).toEqual({ fault: "too many", firstCall: 2 });
    expect(await read("[0,0,0,4]", limits)).toEqual({ fault: "too many", firstCall: undefined });
    expect(await read(`["${"x".repeat(20)}",1]`, limits)).toEqual({ fault: "too large" });
    expect(await read(`[1,"${"x".repeat(20)}"]`, limits)).toEqual({ fault: "too large" });
  });

  it("leaves the thread to others while it is read", async () => {
    const calls = Array.from({ length: 900 }, (_, id) => {
      return { jsonrpc: "2.0", id, method: "eth_call", params: Array(2_000).fill(id) };
    });
    let turns = 0;
    let isRead = false;
    const count = () => {
      turns++;
      if (!isRead) setImmediate(count);
    };
    setImmediate(count);
    const batch = await read(JSON.stringify(calls));
    isRead = true;
    // Jest's own comparison of so many takes seconds.
    expect(isDeepStrictEqual(batch, { entries: calls })).toBe(true);
    // Some megabytes are read in more than one turn on any machine.
    expect(turns).toBeGreaterThan(1);
  });
});
