/** When the age of a newest block says that its chain stands still. */
import { describe, expect, it } from "@jest/globals";
import {
  blockAgeVerdict,
  intervalOfBlocks,
  stallReason,
} from "../../../../chain/consensus/block-age.js";

describe("the age of the newest block", () => {
  it("is judged by how often the chain has blocks", () => {
    const verdicts = (intervalMs: number | undefined, ages: readonly number[]) =>
      ages.map((age) => blockAgeVerdict(age, intervalMs));
    expect(verdicts(undefined, [10, 11, 30, 31])).toEqual(["pass", "warn", "warn", "fail"]);
    // A block's time is that of the votes for the one before: just before the next it is two intervals old.
    expect(verdicts(30_000, [61, 150, 151, 450, 451])).toEqual([
      "pass",
      "pass",
      "warn",
      "warn",
      "fail",
    ]);
    expect(verdicts(50, [10, 11, 30, 31])).toEqual(["pass", "warn", "warn", "fail"]);
    expect(verdicts(30_000, [-150, -151, -451])).toEqual(["pass", "warn", "fail"]);
    expect(blockAgeVerdict(undefined, 30_000)).toBe("fail");
    expect([stallReason(45, 30_000), stallReason(45)]).toEqual([
      "",
      "its newest block is 45 s old: the chain stands still, or this node does",
    ]);
  });

  it("takes the interval of the last blocks, not of a time when the chain stood still", () => {
    expect(intervalOfBlocks([1_060, 1_030, 1_000])).toBe(30_000);
    expect(intervalOfBlocks([9_000, 1_030, 1_000])).toBe(30_000);
    expect(intervalOfBlocks([9_002, 9_000, 1_000])).toBe(2_000);
    // No chain has blocks less often than each minute.
    expect(intervalOfBlocks([9_000, 1_000])).toBe(60_000);
    expect([intervalOfBlocks([1_000]), intervalOfBlocks([])]).toEqual([undefined, undefined]);
  });
});
