/**
 * The short form of the fault tests: one process of each kind killed at a durable step of its way
 * under load, everything killed at once in between, and the judgement over all of it at the end.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { FaultBench, faultSeed } from "../helpers/faults/bench.js";
import type { KitProcessName } from "../helpers/faults/processes.js";
import { kitOffset } from "../helpers/kit.js";

describe("a kit under load", () => {
  let bench: FaultBench;

  beforeAll(async () => {
    bench = await FaultBench.open({ seed: faultSeed(), portOffset: kitOffset(1) });
  });
  afterAll(() => bench?.close());

  it.each<{ process: KitProcessName; failpoint: string }>([
    { process: "node", failpoint: "node.after-block-write:15" },
    { process: "deposit-watcher", failpoint: "watcher.before-block-commit:5" },
    { process: "withdrawal-worker", failpoint: "worker.after-send:2" },
  ])("killed as a whole, then at $failpoint, goes on", async (target) => {
    await bench.strikeAt(target, { ending: "kill -9 of everything" });
    await bench.exchange.settled();
  });

  it("has lost nothing, doubled nothing and changed no block", async () => {
    const figures = await bench.prove();
    console.log(JSON.stringify(figures));
    expect(figures.deposits).toBeGreaterThan(20);
    expect(figures.withdrawals).toBeGreaterThan(20);
  });
});
