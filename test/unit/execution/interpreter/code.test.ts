/** Code is made ready where it runs, and what is kept of it has a bound. */
import { describe, expect, it, jest } from "@jest/globals";
import { ZERO_ADDRESS } from "../../../../chain/address.js";
import { NEWEST_WEIGHTS, weightsOf } from "../../../../chain/evm/compute-weights.js";
import type {
  Code,
  Execution,
  Frame as FrameOfCode,
} from "../../../../node/execution/interpreter/frame.js";
import type { Message } from "../../../../node/execution/interpreter/frame-message.js";

// Its own: what other tests of this process have had made ready takes room.
jest.resetModules();
const { enterBlock, measureBlock, prepareBlock, prepareCode } = await import(
  "../../../../node/execution/interpreter/code.js"
);
const { Frame } = await import("../../../../node/execution/interpreter/frame.js");

const TABLE = weightsOf(NEWEST_WEIGHTS).opcodesNs;

const code = (hex: string) => new Uint8Array(Buffer.from(hex, "hex"));

/** A frame of code that asks for nothing outside of it. */
function frameOf(prepared: Code, gas: number): FrameOfCode {
  const execution = { meter: { leftNs: 1e12 } } as unknown as Execution;
  return new Frame(execution, { gas } as unknown as Message, ZERO_ADDRESS, prepared);
}

/** Runs from its bytes, or its first instruction where it is ready. */
function enter(prepared: Code): void {
  enterBlock(frameOf(prepared, 1e9), 0);
}

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

  it("is made ready up to a bound, and what is ready stays", () => {
    const first = prepareCode(code("5b00"), TABLE);
    prepareBlock(first, 0);
    const large = Array.from({ length: 20 }, () => prepareCode(code("5f50".repeat(12_288)), TABLE));
    // Three times each: what is come to again is made ready.
    for (const each of large) for (let turn = 0; turn < 3; turn++) enter(each);
    const readyCount = large.filter(({ handlers }) => handlers.length > 0).length;
    expect(readyCount).toBeGreaterThan(10);
    expect(readyCount).toBeLessThan(17);
    expect(first.handlers[0]).toBeDefined();
  });

  it("takes no room where it runs once, as code of creations does", () => {
    const prepared = prepareCode(code("00".repeat(49_152)), TABLE);
    enter(prepared);
    expect(prepared.handlers).toHaveLength(0);
  });

  it("is measured once where a block is long, whether it is ready or not", () => {
    const prepared = prepareCode(code("5f50".repeat(1_000)), TABLE);
    // Whoever cannot pay for it has paid for nothing.
    const frame = frameOf(prepared, 0);
    for (let turn = 0; turn < 2; turn++) expect(() => enterBlock(frame, 0)).toThrow("out of gas");
    expect(prepared.measured?.get(0)).toEqual(measureBlock(prepared, 0));
    expect(prepared.measured?.size).toBe(1);
  });
});
