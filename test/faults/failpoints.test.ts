/**
 * Every durable step of every process: under load the kit is started with one failpoint armed, the
 * process dies there by SIGKILL, its next life goes on, and nothing may be lost or doubled.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { WATCHER_FAILPOINTS } from "../../deposit-watcher/watcher.js";
import { NODE_FAILPOINTS } from "../../node/blocks/decision.js";
import { WORKER_FAILPOINTS } from "../../withdrawal-worker/failpoints.js";
import { type Ending, FaultBench, faultSeed } from "../helpers/faults/bench.js";
import type { KitProcessName } from "../helpers/faults/processes.js";
import { kitOffset } from "../helpers/kit.js";

/** The ways a kit ends before its next start, taken in turns: each next start has to cope. */
const ENDINGS: readonly Ending[] = [
  "kill -9 of everything",
  "SIGTERM",
  "kill -9 of the supervisor",
];

/** Needs an incident on the chain, which this chain does not have: see watcher-crash.test.ts. */
const ELSEWHERE = ["watcher.after-incident"];

/** Which hit kills: late enough that there is work of the customers in the step. */
const HITS: Readonly<Record<KitProcessName, string>> = {
  node: ":15",
  "deposit-watcher": ":4",
  "withdrawal-worker": ":2",
  "sidecar-online": "",
  "sidecar-offline": "",
  postgres: "",
};

/** The node asks more than it suggests, so that first attempts are refused and corrected. */
const DEARER_THAN_SUGGESTED = { CAUSEWAY_APP_MINIMUM_GAS_PRICES: "50000000atoken" };

const steps = [
  ...NODE_FAILPOINTS.map((failpoint) => ({ process: "node", failpoint }) as const),
  ...WATCHER_FAILPOINTS.map((failpoint) => ({ process: "deposit-watcher", failpoint }) as const),
  ...Object.values(WORKER_FAILPOINTS).map(
    (failpoint) => ({ process: "withdrawal-worker", failpoint }) as const,
  ),
]
  .filter(({ failpoint }) => !ELSEWHERE.includes(failpoint))
  .map((step, index) => ({ ...step, ending: ENDINGS[index % ENDINGS.length] ?? "SIGTERM" }));

describe("a process that dies by SIGKILL", () => {
  let bench: FaultBench;

  beforeAll(async () => {
    bench = await FaultBench.open({ seed: faultSeed(), portOffset: kitOffset(2) });
  });
  afterAll(() => bench?.close());

  it.each(steps)("at $failpoint loses and doubles nothing (after $ending)", async (step) => {
    const { process, ending } = step;
    const isCorrection = step.failpoint === WORKER_FAILPOINTS.afterCorrectionCommit;
    const env = isCorrection ? DEARER_THAN_SUGGESTED : {};
    const failpoint = `${step.failpoint}${HITS[process]}`;
    await bench.strikeAt({ process, failpoint }, { ending, env });
    const figures = await bench.prove();
    console.log(`${failpoint}: ${JSON.stringify(figures)}`);
    expect(figures.witnessedBlocks).toBeGreaterThan(0);
  });
});
