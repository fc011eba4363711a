/**
 * The worst block stays bounded in work: no program gets far more of it for its compute units than
 * another. Work is counted, not timed; `npm run bench -- --only weights` times the same programs
 * beside their units.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { RunResult } from "../../../../node/execution/transaction-engine.js";
import type { WorstLimits } from "../../../bench/weights.js";
import { type WorstCase, worstCases } from "../../../bench/worst-cases.js";
import { type BlockCounter, countExecutedBlocks } from "../../../helpers/effort/executed-blocks.js";

const LIMITS: WorstLimits = { gas: 30_000_000n, limitNs: 2_000_000 };

/** Enough to come to the calls in the cases that do something large before. */
const LIMITS_OF_TWO_STAGES: WorstLimits = { gas: 30_000_000n, limitNs: 60_000_000 };

/**
 * Entries into functions, branches and loop bodies for a microsecond of units: at most some 900, in code of
 * JUMPDESTs alone, each of which is a block that is measured until it is ready; elsewhere at most some 690. A
 * loop that costs nothing would have thousands.
 */
const MOST_ENTRIES_PER_US = 1_000;

let counter: BlockCounter;
let openWorstCase: (item: WorstCase, limits: WorstLimits) => () => RunResult;

beforeAll(async () => {
  counter = await countExecutedBlocks();
  ({ openWorstCase } = await import("../../../bench/weights.js"));
});

afterAll(() => counter.stop());

function limitsOf({ name }: WorstCase): WorstLimits {
  return name.includes(", then ") ? LIMITS_OF_TWO_STAGES : LIMITS;
}

describe("work for compute units", () => {
  it("is counted: a loop that runs longer counts for more", async () => {
    const loop = async (times: number) => {
      let sum = 0;
      for (let turn = 0; turn < times; turn++) if (turn % 2 === 0) sum += turn;
      return sum;
    };
    const counted = async (times: number) => {
      await loop(times);
      return counter.count();
    };
    // The first counts have what else was done for the first time.
    for (let turn = 0; turn < 2; turn++) await counted(10);
    const few = await counted(10);
    const many = await counted(1e4);
    // V8 misses some entries while it makes a function faster.
    expect(many).toBeGreaterThan(few + 2_000);
  });

  it("is bounded for all opcodes, precompiles and frames, and all is used up", async () => {
    const dear: { name: string; entriesPerUs: number }[] = [];
    // V8 begins to count in a function when that has run for a while.
    for (const item of worstCases()) openWorstCase(item, limitsOf(item))();
    await counter.count();
    for (const item of worstCases()) {
      const limits = limitsOf(item);
      const { error, gasUsed, isOutOfCompute, computeNs } = openWorstCase(item, limits)();
      const entriesPerUs = (await counter.count()) / (computeNs / 1_000);
      expect([item.name, error === undefined, gasUsed]).toEqual([item.name, false, limits.gas]);
      // Whatever ends it takes all its gas; what ends it first depends on the program.
      expect([item.name, isOutOfCompute ? computeNs : limits.limitNs]).toEqual([
        item.name,
        limits.limitNs,
      ]);
      if (entriesPerUs > MOST_ENTRIES_PER_US) dear.push({ name: item.name, entriesPerUs });
    }
    expect(worstCases().length).toBeGreaterThan(60);
    expect(dear).toEqual([]);
  });
});
