/** What a run at random came to: one in which nothing happens would keep every promise. */
import { expect } from "@jest/globals";

/**
 * Holds a run against what it has to have come to, more than `least` times each. Only the usual seeds are
 * known to come to all of it in the usual length: of one that was chosen (CAUSEWAY_SIM_SEED) what it did not
 * reach is printed, so that its promises count for what it did.
 */
export function expectReached(
  counts: ReadonlyMap<string, number>,
  wanted: readonly string[],
  least = 0,
): void {
  const missed = wanted.filter((what) => (counts.get(what) ?? 0) <= least);
  const seed = process.env["CAUSEWAY_SIM_SEED"];
  if (seed === undefined) expect(missed).toEqual([]);
  else if (missed.length > 0) console.log(`seed ${seed} did not reach: ${missed.join(", ")}`);
}
