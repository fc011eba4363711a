/** What a treasury keeps of sweeps that a round does not look at: a bounded number, the newest known. */
import { expect, it } from "@jest/globals";
import { remembered } from "../../../withdrawal-worker/treasury/remembered.js";

const COUNT = 10_003;
const known = new Map(Array.from({ length: COUNT }, (_, id) => [id, `sweep ${id}`]));

it("keeps all of the round, and of others those that were known last", () => {
  const kept = remembered(known, new Set([0, 7]));
  expect(kept.size).toBe(10_002);
  expect([...kept.keys()].slice(-2)).toEqual([0, 7]);
  expect([kept.has(1), kept.has(2), kept.get(COUNT - 1)]).toEqual([false, true, "sweep 10002"]);
});

it("keeps others of a round without any", () => {
  expect(remembered(new Map([[3, "x"]]), new Set())).toEqual(new Map([[3, "x"]]));
});
