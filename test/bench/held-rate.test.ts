/** The judgement of the benchmark itself: what counts as held, and how the search goes on. */
import { describe, expect, it } from "@jest/globals";
import { judgeTrial, RateSearch, type TrialRecord } from "./held-rate.js";

/** Six blocks under 1,000 transactions per second, two seconds apart, then two that drain. */
function steady(): TrialRecord {
  const accepted = Array.from({ length: 120 }, (_, index) => ({
    atMs: (index + 1) * 100,
    count: 100,
  }));
  const blocks = Array.from({ length: 8 }, (_, index) => ({
    height: index + 1,
    atMs: index * 2_000 + 50,
    transactions: index === 0 || index === 7 ? 0 : 2_000,
  }));
  return { wantedPerSecond: 1_000, startMs: 0, accepted, blocks, refused: 0, intervalMs: 2_000 };
}

describe("a trial", () => {
  it("is held when every block takes what came before it", () => {
    const verdict = judgeTrial(steady());
    expect(verdict).toMatchObject({ held: true, reason: "", meanIntervalMs: 2_000 });
    expect(verdict.sentPerSecond).toBeCloseTo(1_000);
    expect(verdict.inclusionP50Ms).toBeGreaterThan(500);
    expect(verdict.inclusionP99Ms).toBeLessThan(2_100);
  });

  it("is not held when blocks take less than arrives, although all is mined in the end", () => {
    const { blocks, ...rest } = steady();
    const slow = [
      ...blocks.map((block, index) => ({ ...block, transactions: index === 0 ? 0 : 1_500 })),
      { height: 9, atMs: 16_050, transactions: 1_500 },
    ];
    const verdict = judgeTrial({ ...rest, blocks: slow });
    expect(verdict.held).toBe(false);
    expect(verdict.reason).toContain("the backlog grows");
  });

  it("is not held when blocks stretch, are refused or miss transactions", () => {
    const record = steady();
    const late = record.blocks.map((block, index) => ({ ...block, atMs: index * 2_300 }));
    expect(judgeTrial({ ...record, blocks: late }).reason).toContain("blocks every 2300 ms");
    expect(judgeTrial({ ...record, refused: 3 }).reason).toContain("3 refused");
    const lost = record.blocks.slice(0, 5);
    expect(judgeTrial({ ...record, blocks: lost }).reason).toContain("4000 not mined");
  });

  it("is not held when the server pushes the sender back", () => {
    const record = steady();
    expect(judgeTrial({ ...record, wantedPerSecond: 1_200 }).reason).toContain("only 1000/s");
  });
});

describe("the search", () => {
  it("closes in on the highest rate that holds", () => {
    const search = new RateSearch(2_000);
    let trials = 0;
    for (let rate = search.next(); rate !== undefined; rate = search.next()) {
      search.learn(rate, rate <= 5_000);
      trials += 1;
    }
    expect(search.held).toBeLessThanOrEqual(5_000);
    expect(search.held).toBeGreaterThan(4_800);
    expect(trials).toBeLessThan(10);
  });

  it("goes down when the first rate is too high", () => {
    const search = new RateSearch(10_000);
    search.learn(search.next() ?? 0, false);
    expect(search.next()).toBeLessThan(10_000);
    expect(search.held).toBe(0);
  });
});
