/** Which blocks have to stay, bound by bound; the SDK's rule beside ours. */
import { describe, expect, it } from "@jest/globals";
import { pruningFaults, stateRetention } from "../../../node/settings/pruning-config.js";
import { retainedFrom } from "../../../node/store/pruning/retention.js";

const nothingNeeded = { evidenceMaxAgeBlocks: 0, stateBlocks: 0, doubleSignCheckBlocks: 0 };

describe("the oldest block that must stay", () => {
  it.each([
    ["all with min-retain-blocks 0", 1_000, { minRetainBlocks: 0 }, undefined, 0],
    ["the setting alone", 1_000, { minRetainBlocks: 100 }, undefined, 900],
    ["a chain shorter than the setting", 50, { minRetainBlocks: 100 }, undefined, 0],
    ["a chain as long as the setting", 100, { minRetainBlocks: 100 }, undefined, 0],
    ["one block more", 101, { minRetainBlocks: 100 }, undefined, 1],
    [
      "evidence needs more",
      1_000,
      { minRetainBlocks: 9, evidenceMaxAgeBlocks: 400 },
      undefined,
      600,
    ],
    [
      "evidence needs less",
      1_000,
      { minRetainBlocks: 500, evidenceMaxAgeBlocks: 400 },
      undefined,
      500,
    ],
    ["kept states need more", 1_000, { minRetainBlocks: 9, stateBlocks: 300 }, undefined, 700],
    [
      "the look for double signing",
      1_000,
      { minRetainBlocks: 9, doubleSignCheckBlocks: 77 },
      undefined,
      923,
    ],
    ["an older snapshot", 1_000, { minRetainBlocks: 9 }, 800, 800],
    ["a newer snapshot", 1_000, { minRetainBlocks: 500 }, 800, 500],
    ["a snapshot does not prune", 1_000, { minRetainBlocks: 0 }, 800, 0],
    [
      "the greatest of all needs",
      1_000,
      { minRetainBlocks: 10, evidenceMaxAgeBlocks: 20, stateBlocks: 30, doubleSignCheckBlocks: 25 },
      980,
      970,
    ],
  ])("%s", (_name, head, retention, oldestSnapshot, expected) => {
    expect(retainedFrom(head, { ...nothingNeeded, ...retention }, oldestSnapshot)).toBe(expected);
  });

  it("is at least as old as what the SDK keeps", () => {
    // baseapp.GetBlockRetentionHeight: the least of all non-zero constraints, 0 without one.
    const sdk = (commit: number, minRetain: number, evidence: number, snapshots: number) => {
      if (minRetain === 0) return 0;
      const bounds = [commit - minRetain];
      if (evidence > 0) bounds.push(commit - evidence);
      if (snapshots > 0) bounds.push(commit - snapshots);
      return Math.max(0, Math.min(...bounds));
    };
    for (const head of [1, 99, 100, 101, 5_000]) {
      for (const minRetainBlocks of [0, 1, 100, 4_000]) {
        for (const evidenceMaxAgeBlocks of [0, 50, 200]) {
          for (const snapshotBlocks of [0, 60, 300]) {
            const oldest = snapshotBlocks === 0 ? undefined : Math.max(0, head - snapshotBlocks);
            const retention = { ...nothingNeeded, minRetainBlocks, evidenceMaxAgeBlocks };
            const expected = sdk(head, minRetainBlocks, evidenceMaxAgeBlocks, snapshotBlocks);
            expect([head, retention, oldest, retainedFrom(head, retention, oldest)]).toEqual([
              head,
              retention,
              oldest,
              expected,
            ]);
          }
        }
      }
    }
  });
});

describe("the settings of pruning", () => {
  const custom = (keep: number, interval: number) =>
    ({ pruning: "custom", "pruning-keep-recent": keep, "pruning-interval": interval }) as const;

  it("mean what they mean in the SDK", () => {
    const other = { "pruning-keep-recent": 7, "pruning-interval": 70 };
    expect(stateRetention({ pruning: "default", ...other })).toBeUndefined();
    expect(stateRetention({ pruning: "nothing", ...other })).toBeUndefined();
    expect(stateRetention({ pruning: "everything", ...other })).toEqual({
      keepRecentBlocks: 2,
      intervalBlocks: 10,
    });
    expect(stateRetention(custom(7, 70))).toEqual({ keepRecentBlocks: 7, intervalBlocks: 70 });
  });

  it("refuse to keep less than everything does, all faults at once", () => {
    expect(pruningFaults(custom(2, 10))).toEqual([]);
    expect(pruningFaults(custom(0, 0)).map(({ key }) => key)).toEqual([
      "pruning-keep-recent",
      "pruning-interval",
    ]);
    expect(pruningFaults(custom(1, 10))).toEqual([
      { key: "pruning-keep-recent", value: "1", allowed: 'at least 2 with pruning = "custom"' },
    ]);
    expect(pruningFaults({ ...custom(0, 0), pruning: "everything" })).toEqual([]);
  });
});
