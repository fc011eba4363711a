/**
 * The worker against random interleavings of calls, blocks, losses and deaths, over tables and a
 * pool in memory. In each of them: paid at most once; a hold goes back at most once, and only when
 * nothing was paid or can be; nothing leaves that was not stored; no nonce is left out; and when
 * the network heals every request ends, unless somebody else used the key, which freezes.
 */
import { describe, expect, it } from "@jest/globals";
import type { BrokenRule } from "./payout-ledger.js";
import { runInterleaving } from "./payout-model.js";
import { expectReached } from "./reached.js";

/** One seed decides a run; CAUSEWAY_SIM_SEED starts somewhere else, CAUSEWAY_SIM_RUNS is longer. */
const FIRST_SEED = Number(process.env["CAUSEWAY_SIM_SEED"] ?? 20_261_120);
const RUNS = Number(process.env["CAUSEWAY_SIM_RUNS"] ?? 600);

describe("payouts", () => {
  it("keep their promises in every interleaving, and all of them end", async () => {
    const ends = new Map<string, number>();
    let calls = 0;
    for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      const report = await runInterleaving(seed);
      calls += report.calls;
      for (const [status, count] of report.ends) ends.set(status, (ends.get(status) ?? 0) + count);
    }
    expectReached(ends, ["cancelled", "failed", "settled"]);
    expect(calls).toBeGreaterThan(RUNS * 30);
    console.log(`seeds ${FIRST_SEED} to ${FIRST_SEED + RUNS - 1}:`, calls, "calls,", ends);
  });

  const rules: readonly BrokenRule[] = [
    "release-at-once",
    "forget-bytes",
    "recycle-nonce",
    "any-receipt-pays",
    "pay-again",
    "skip-nonce",
  ];
  for (const rule of rules) {
    it(`break a promise within a few interleavings once the ledger would ${rule}`, async () => {
      const runAll = async () => {
        for (let seed = FIRST_SEED; seed < FIRST_SEED + 60; seed++) {
          await runInterleaving(seed, rule);
        }
      };
      await expect(runAll()).rejects.toThrow(/seed \d+/);
    });
  }
});
