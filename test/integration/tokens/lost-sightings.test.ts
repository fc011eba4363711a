/** Tokens that nobody listed, in blocks that a chain has lost. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { listSightings } from "../../../ledger/assets/token-sightings.js";
import { callOf, contractAt, TokenBench } from "./token-bench.js";

let bench: TokenBench;

beforeEach(async () => {
  bench = await TokenBench.open();
  await bench.watch();
  await bench.deploy();
});
afterEach(() => bench.close());

const seen = () => listSightings(bench.database, { afterId: 0, limit: 10 });

it("are not listed before they are mined again, and then once", async () => {
  const alice = await bench.register("alice");
  await bench.mine([{ to: alice, value: 1_000n }]);
  await bench.mine([]);
  await bench.caughtUp();
  const { height: kept } = bench.chain.chain.view.head();
  const claim = callOf("SecondPlain", "mint", [alice, 40n]);
  await bench.mine([claim]);
  await bench.caughtUp();
  const [first] = await seen();
  expect(first).toMatchObject({ contract: contractAt("SecondPlain"), reason: "UNKNOWN_TOKEN" });

  bench = await bench.without(kept);
  for (let block = 0; block < 4; block += 1) await bench.mine([]);
  await bench.recover();
  await bench.caughtUp();
  expect(await seen()).toEqual([]);
  await bench.mine([claim]);
  await bench.caughtUp();
  const again = await seen();
  expect(again.map(({ txHash }) => txHash)).toEqual([first?.txHash]);
  expect(again[0]?.height).toBeGreaterThan(first?.height ?? Infinity);
});
