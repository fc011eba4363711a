/** Code is made ready where it runs, and what is kept of it has a bound. */
import { NEWEST_WEIGHTS, weightsOf } from "../../../../chain/evm/compute-weights.js";
import { describe, expect, it, jest } from "@jest/globals";

// Its own: what other tests of this process have had made ready takes room.
jest.resetModules();
const { measureBlock, prepareBlock, prepareCode } = await import(
  "../../../../node/execution/interpreter/code.js"
);

const TABLE = weightsOf(NEWEST_WEIGHTS).opcodesNs;

const code = (hex: string) => new Uint8Array(Buffer.from(hex, "hex"));

describe("prepared code", () => {
  it("is the same for the same bytes, and made ready no further than its block", () => {
    // PUSH1 5b JUMPDEST PUSH0 STOP: the pushed 5b is no place to jump to.
    const bytes = code("605b5b5f00");
    const prepared = prepareCode(bytes, TABLE);
    expect(prepareCode(bytes, TABLE)).toBe(prepared);
    expect([...prepared.jumpTable]).toEqual([0, 0, 1, 0, 0]);
    prepareBlock(prepared, 0);
    expect(prepared.handlers.map((handler) => handler !== undefined)).toEqual([true]);
    prepareBlock(prepared, 2);
    expect([0, 1, 2, 3, 4].map((place) => prepared.handlers[place] !== undefined)).toEqual([
      true,
      false,
      true,
      true,
      true,
    ]);
  });

  it("is measured by the table of its chain", () => {
    const bytes = code("5b00");
    const prepared = prepareCode(bytes, TABLE);
    const doubled = TABLE.map((ns) => 2 * ns);
    const { computeNs } = measureBlock(prepared, 0);
    expect(measureBlock(prepareCode(bytes, doubled), 0).computeNs).toBe(2 * computeNs);
    expect(measureBlock(prepareCode(bytes, TABLE), 0).computeNs).toBe(computeNs);
  });

  it("is not kept beyond a bound, and what is kept stays", () => {
    const first = code("5b00");
    const prepared = prepareCode(first, TABLE);
    const large = Array.from({ length: 250 }, () => code("5b".repeat(24_576)));
    for (const bytes of large) prepareCode(bytes, TABLE);
    expect(prepareCode(first, TABLE)).toBe(prepared);
    const last = large.at(-1) ?? first;
    expect(prepareCode(last, TABLE)).not.toBe(prepareCode(last, TABLE));
    expect(prepareCode(last, TABLE).handlers).toHaveLength(0);
  });
});
