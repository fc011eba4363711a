/**
 * Our own EVM against @ethereumjs/evm: the same random programs over the same state must come to the
 * same gas, output, logs, coins moved and state. Millions of them, and Ethereum's own state tests, are
 * beside this (`npm run test:evm`).
 */
import { describe, expect, it } from "@jest/globals";
import { EXACT_STEPS } from "../../../../node/execution/interpreter/watcher.js";
import { codesOf, ENGINES, outcomeOf } from "./program-runs.js";
import { randomOf } from "./random-programs.js";
import { sequenceOf, sequenceOutcomes } from "./sequence-runs.js";

const PROGRAMS = Number(process.env["CAUSEWAY_PROGRAMS"] ?? 300);
const FIRST_SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 1);
/** Each is several transactions. */
const SEQUENCES = Math.ceil(PROGRAMS / 3);
console.log(`engines: seeds from ${FIRST_SEED}, ${PROGRAMS} programs (CAUSEWAY_PROGRAMS)`);

describe("our own EVM", () => {
  it("does what the library's does, on random programs", async () => {
    const ends = new Map<string, number>();
    for (let seed = FIRST_SEED; seed < FIRST_SEED + PROGRAMS; seed++) {
      const codes = codesOf(seed);
      const { compute, ...own } = await outcomeOf(codes, ENGINES.own);
      const { compute: none, ...library } = await outcomeOf(codes, ENGINES.library);
      expect([none.isOut, compute.isOut]).toEqual([false, false]);
      expect({ seed, ...own }).toEqual({ seed, ...library });
      const end = library.end ?? "success";
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    // The programs must reach their ends in all ways, else they show nothing.
    expect(ends.size).toBe(3);
    expect(ends.get("success")).toBeGreaterThan(PROGRAMS / 20);
  });

  it("does what the library's does, transaction behind transaction", async () => {
    let [made, destroyed] = [0, 0];
    for (let seed = FIRST_SEED; seed < FIRST_SEED + SEQUENCES; seed++) {
      const sequence = sequenceOf(seed);
      const own = await sequenceOutcomes(sequence, ENGINES.own);
      const library = await sequenceOutcomes(sequence, ENGINES.library);
      expect({ seed, own }).toEqual({ seed, own: library });
      made += own.filter(({ created }) => created !== undefined).length;
      destroyed += own.filter((one) => one.destroyed.length > 0).length;
    }
    expect(made).toBeGreaterThan(SEQUENCES / 20);
    expect(destroyed).toBeGreaterThan(SEQUENCES / 20);
  });

  it("comes to the same, compute units too, where it is watched step by step", async () => {
    let outs = 0;
    for (let seed = FIRST_SEED; seed < FIRST_SEED + PROGRAMS; seed++) {
      const codes = codesOf(seed);
      const random = randomOf(seed);
      const limitNs = seed % 3 === 0 ? Number.POSITIVE_INFINITY : 1_000 + random(120_000);
      const plain = await outcomeOf(codes, ENGINES.own, { limitNs });
      const watched = await outcomeOf(codes, ENGINES.own, {
        limitNs,
        watcher: { steps: EXACT_STEPS },
      });
      expect({ seed, ...watched }).toEqual({ seed, ...plain });
      if (plain.compute.isOut) outs++;
    }
    expect(outs).toBeGreaterThan(PROGRAMS / 20);
  });
});
