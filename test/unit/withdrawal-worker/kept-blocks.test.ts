/** What a node without a receipt denies, and what it cannot say. */
import { expect, it } from "@jest/globals";
import { judgeLost } from "../../../withdrawal-worker/kept-blocks.js";

const HEAD = 1_790_000_000;

/** Of one thing that was signed so long ago. */
const judge = (ageSeconds: number | undefined, oldestSeconds: number) =>
  judgeLost(["one"], { oldestSeconds, headSeconds: HEAD }, () => ageSeconds);

it("denies what was signed a minute behind its oldest block, or later", () => {
  expect(judge(30, HEAD - 90).denied).toEqual(["one"]);
  expect(judge(30, HEAD - 89).denied).toEqual([]);
  expect(judge(0, HEAD).denied).toEqual([]);
});

it("denies all where it has all blocks, and what was never signed whatever it has", () => {
  for (const age of [0, 1e9, Infinity, undefined]) {
    expect([age, judge(age, -Infinity).denied]).toEqual([age, ["one"]]);
  }
  for (const oldest of [HEAD, Infinity]) {
    expect([oldest, judge(undefined, oldest).denied]).toEqual([oldest, ["one"]]);
  }
});

it("cannot say what is older than anybody knows, or whether its oldest block is older", () => {
  expect(judge(Infinity, HEAD - 1e6)).toMatchObject({
    unkept: ["one"],
    reason: expect.stringMatching(/: ask a node that keeps all blocks$/),
  });
  expect(judge(30, Infinity).reason).toMatch(/^the node keeps no blocks before its head/);
});

it("names the earliest block that is needed", () => {
  const ages = new Map([
    ["new", 10],
    ["old", 600],
    ["known", undefined],
  ]);
  const kept = { oldestSeconds: HEAD - 60, headSeconds: HEAD };
  const judged = judgeLost([...ages.keys()], kept, (name) => ages.get(name));
  expect(judged.denied).toEqual(["known"]);
  expect(judged.unkept).toEqual(["new", "old"]);
  const since = new Date((HEAD - 660) * 1_000).toISOString();
  expect(judged.reason).toContain(`ask a node that keeps the blocks since ${since}`);
});
