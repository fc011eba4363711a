/**
 * The worst block stays bounded in time: no program buys far more time for its gas than another.
 * Ratios against a plain loop measured beside it, so that the machine's speed cancels out; the
 * figures behind `max_call_gas` are in docs/adr/0005.
 */
import { expect, it } from "@jest/globals";
import { measureWorstCase, type WorstResult } from "../../bench/worst-gas.js";
import { type WorstCase, worstCases } from "../../bench/worst-gas-cases.js";

/** The plain loop: additions. */
const REFERENCE = "ADD";

/**
 * The dearest case is about four times as slow as the reference; @ethereumjs/evm as it comes is
 * 170 times as slow at a jump in large code, and 17 times at calls of tiny contracts.
 */
const MOST_TIMES_SLOWER = 12;

const GAS = 400_000n;

/** A pause of the collector or a neighbour spoils one measurement, not three. */
const TRIES = 3;

function caseNamed(name: string): WorstCase {
  const found = worstCases().find((item) => item.name === name);
  if (found === undefined) throw new Error(`there is no case ${name}`);
  return found;
}

it("buys with no opcode or precompile far more time than gas", async () => {
  const reference = caseNamed(REFERENCE);
  await measureWorstCase(reference, GAS);
  const isSlow = async (item: WorstCase): Promise<WorstResult | undefined> => {
    const { mgasPerSecond } = await measureWorstCase(reference, GAS);
    const result = await measureWorstCase(item, GAS);
    return result.mgasPerSecond * MOST_TIMES_SLOWER < mgasPerSecond ? result : undefined;
  };
  const slow: WorstResult[] = [];
  for (const item of worstCases()) {
    let last: WorstResult | undefined;
    for (let attempt = 0; attempt < TRIES; attempt++) {
      last = await isSlow(item);
      if (last === undefined) break;
    }
    if (last !== undefined) slow.push(last);
  }
  expect(worstCases().length).toBeGreaterThan(60);
  expect(slow).toEqual([]);
});
