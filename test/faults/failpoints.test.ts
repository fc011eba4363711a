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
import { HttpProxy } from "../helpers/faults/proxy/http-proxy.js";
import { replying } from "../helpers/faults/proxy/rules.js";
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

/** What the node takes at least, and what the worker is told, as by another node behind a balancer. */
const [TAKEN_ATOKEN, TOLD_ATOKEN] = [50_000_000n, 25_000_000n];

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
  let proxy: HttpProxy | undefined;

  beforeAll(async () => {
    bench = await FaultBench.open({ seed: faultSeed(), portOffset: kitOffset(2) });
  });
  afterAll(async () => {
    await bench?.close();
    await proxy?.close();
  });

  /** Settings with which first attempts are refused and corrected. */
  async function dearerThanTold(): Promise<Record<string, string>> {
    proxy ??= await HttpProxy.start(bench.kit.url("jsonRpc"), bench.random);
    const told = { result: `0x${TOLD_ATOKEN.toString(16)}` };
    proxy.rules = [replying("a low price", "eth_gasPrice", () => told)];
    return {
      CAUSEWAY_APP_MINIMUM_GAS_PRICES: `${TAKEN_ATOKEN}atoken`,
      CAUSEWAY_WORKER_NODE_JSON_RPC_URL: proxy.url,
    };
  }

  it.each(steps)("at $failpoint loses and doubles nothing (after $ending)", async (step) => {
    const { process, ending } = step;
    const isCorrection = step.failpoint === WORKER_FAILPOINTS.afterCorrectionCommit;
    const env = isCorrection ? await dearerThanTold() : {};
    const failpoint = `${step.failpoint}${HITS[process]}`;
    await bench.strikeAt({ process, failpoint }, { ending, env });
    const figures = await bench.prove();
    console.log(`${failpoint}: ${JSON.stringify(figures)}`);
    expect(figures.witnessedBlocks).toBeGreaterThan(0);
  });
});
