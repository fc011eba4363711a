/** Whole codes are not read for the price of an opcode that wants little of them. */
import { describe, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../../chain/hex.js";
import { hexToBytes } from "../../../../chain/hex.js";
import { call, CONTRACT, MemoryState, OTHER } from "../call-fixture.js";

const TIMES = 100;

/** Counts how often a code was read. */
class CountingState extends MemoryState {
  readonly codeReads = new Map<Hash32, number>();

  override code(codeHash: Hash32): Uint8Array {
    this.codeReads.set(codeHash, (this.codeReads.get(codeHash) ?? 0) + 1);
    return super.code(codeHash);
  }
}

/** The other contract has 24 KiB of code; the program's output is what RETURN gives. */
async function run(program: string): Promise<{ output: Uint8Array; mostReads: number }> {
  const other = { code: "5b".repeat(24_576) };
  const state = new CountingState({ [CONTRACT]: { code: program }, [OTHER]: other });
  const result = await call(state, {});
  if (result.outcome !== "success") throw new Error(`the program ended with ${result.outcome}`);
  return { output: result.returnData, mostReads: Math.max(...state.codeReads.values()) };
}

const pushOther = `73${OTHER.slice(2)}`;

describe("codes of other accounts", () => {
  it("are read once, however often their size is asked for", async () => {
    const { output, mostReads } = await run(`${`${pushOther}3b5f52`.repeat(TIMES)}60205ff3`);
    expect(output).toEqual(hexToBytes(`0x${(24_576).toString(16).padStart(64, "0")}`));
    expect(mostReads).toBe(1);
  });

  it("are not read for copies of no bytes", async () => {
    const { mostReads } = await run(`5f5f5f${pushOther}3c`.repeat(TIMES));
    // Its own.
    expect(mostReads).toBe(1);
  });

  it("are copied from their start, zeros behind their end", async () => {
    // The last two bytes of the code and two behind it.
    const { output } = await run(`6004615ffe5f${pushOther}3c60045ff3`);
    expect(output).toEqual(hexToBytes("0x5b5b0000"));
  });
});
