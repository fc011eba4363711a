/**
 * The worst block stays bounded in time: no program buys more time for its gas than the limit of
 * call gas is made for. The exact figures are measured by the bench on a quiet machine.
 */
import { expect, it } from "@jest/globals";
import { testGenesis } from "../../helpers/execution-chain.js";
import { measureWorstGas } from "../../bench/worst-gas.js";

/** D21: the block with the dearest transactions executes within a second. */
const BUDGET_SECONDS = 1;

/** Test runner and a busy machine make everything slower; a real fault is ten times as slow. */
const SLACK = 4;

it("buys with no opcode or precompile more time than its gas is worth", async () => {
  const { maxCallGas } = testGenesis(`0x${"11".repeat(20)}`).params;
  const leastMgas = Number(maxCallGas) / 1e6 / (BUDGET_SECONDS * SLACK);
  const results = await measureWorstGas(400_000n);
  expect(results.length).toBeGreaterThan(60);
  const slow = results.filter((result) => result.mgasPerSecond < leastMgas);
  expect(slow).toEqual([]);
});
