/**
 * The list of faults, each on an exchange of its own over a chain and a database that all share:
 * real processes behind proxies that misbehave. Several run at a time; what strikes all of them
 * runs by itself at the end. CAUSEWAY_FAULT_ONLY names numbers, CAUSEWAY_FAULT_SEED repeats a run.
 */
import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { faultSeed } from "../helpers/faults/bench.js";
import { prove } from "../helpers/faults/lab/judge.js";
import { LabChain } from "../helpers/faults/lab/lab-chain.js";
import { type Backend, LabExchange } from "../helpers/faults/lab/lab-exchange.js";
import { redisProgram } from "../helpers/faults/lab/own-redis.js";
import { kitOffset } from "../helpers/kit.js";
import { CRASHES } from "./scenarios/crashes.js";
import { DATABASES } from "./scenarios/databases.js";
import { POOLS } from "./scenarios/pools.js";
import { QUEUES } from "./scenarios/queues.js";
import type { Scenario } from "./scenarios/scenario.js";
import { TREASURIES } from "./scenarios/treasuries.js";
import { VIEWS } from "./scenarios/views.js";
import { WIRES } from "./scenarios/wires.js";
import { WORKERS } from "./scenarios/workers.js";

/** Exchanges at a time: most of a scenario is waiting. */
const AT_ONCE = Number(process.env["CAUSEWAY_FAULT_AT_ONCE"] ?? 4);

/** One scenario on one backend. */
interface Trial {
  readonly scenario: Scenario;
  readonly backend: Backend;
  readonly seed: number;
  readonly title: string;
}

const seed = faultSeed();
const only = (process.env["CAUSEWAY_FAULT_ONLY"] ?? "").split(",").filter(Boolean).map(Number);
const hasRedis = redisProgram() !== undefined;

const trials: readonly Trial[] = [
  ...CRASHES,
  ...QUEUES,
  ...DATABASES,
  ...VIEWS,
  ...WIRES,
  ...POOLS,
  ...WORKERS,
  ...TREASURIES,
]
  .toSorted((left, right) => left.number - right.number)
  .filter(({ number }) => only.length === 0 || only.includes(number))
  .flatMap((scenario) =>
    (scenario.backends ?? (["postgres", "redis"] as const))
      .filter((backend) => backend === "postgres" || hasRedis)
      .map((backend) => ({
        scenario,
        backend,
        // Each scenario repeats by itself as it went among all.
        seed: (seed + scenario.number * 1_009 + (backend === "redis" ? 7 : 0)) >>> 0,
        title: `${scenario.number} on ${backend}: ${scenario.name}`,
      })),
  );

const apart = trials.filter(({ scenario }) => scenario.isShared !== true);
const shared = trials.filter(({ scenario }) => scenario.isShared === true);

/** Trials in the order in which they begin: the longest waits first, so that the others fill the time. */
const inTurn = [...apart.toSorted((left, right) => waitOf(right) - waitOf(left)), ...shared];

const outcomes = new Map<string, Promise<void>>();
let chain: LabChain | undefined;

describe("a fault", () => {
  beforeAll(async () => {
    if (trials.length === 0) return;
    console.log(`seed ${seed} (CAUSEWAY_FAULT_SEED repeats it)`);
    const opened = await LabChain.open({
      portOffset: kitOffset(0),
      hasToken: trials.some(({ scenario }) => scenario.setup?.hasToken === true),
    });
    chain = opened;
    startAll(opened);
  });
  afterAll(async () => {
    await Promise.allSettled(outcomes.values());
    await chain?.close();
  });

  if (trials.length === 0) {
    it("of another list is asked for", () => expect(only).not.toEqual([]));
  }
  // In the order in which they begin: a test's time is for its own trial, not for all that come before.
  for (const { title } of inTurn) {
    it(title, async () => {
      await outcomes.get(title);
      expect(outcomes.has(title)).toBe(true);
    });
  }
});

/** Lets all trials begin in their turn, so many at a time, those of `shared` by themselves. */
function startAll(opened: LabChain): void {
  const lanes = Array.from({ length: AT_ONCE }, () => Promise.resolve());
  for (const trial of inTurn.slice(0, apart.length)) {
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    queue.push({ trial, begin });
    note(
      trial,
      begun.then(() => runTrial(opened, trial)),
    );
  }
  const ended = lanes.map(async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      next.begin();
      await outcomes.get(next.trial.title)?.catch(() => undefined);
    }
  });
  let before: Promise<unknown> = Promise.all(ended);
  for (const trial of shared) {
    const outcome = before.then(() => runTrial(opened, trial));
    before = outcome.catch(() => undefined);
    note(trial, outcome);
  }
}

const queue: { readonly trial: Trial; readonly begin: () => void }[] = [];

/** The two that wait for a minute. */
function waitOf({ scenario }: Trial): number {
  return [12, 42, 43].includes(scenario.number) ? 1 : 0;
}

/** Its test awaits it; until then nobody may call it unhandled. */
function note({ title }: Trial, outcome: Promise<void>): void {
  outcome.catch(() => undefined);
  outcomes.set(title, outcome);
}

async function runTrial(opened: LabChain, trial: Trial): Promise<void> {
  const { scenario, backend } = trial;
  const startedMs = performance.now();
  let result = "failed";
  try {
    const options = { chain: opened, backend, seed: trial.seed, ...scenario.setup };
    const lab = await LabExchange.open(options);
    try {
      await scenario.run(lab);
      await prove(lab);
      result = "passed";
    } finally {
      await lab.close();
    }
  } finally {
    report(trial, result, (performance.now() - startedMs) / 1_000);
  }
}

/** A line for the table that the runner prints. */
function report(trial: Trial, result: string, seconds: number): void {
  const file = process.env["CAUSEWAY_FAULT_REPORT"];
  const { scenario, backend } = trial;
  const line = { number: scenario.number, name: scenario.name, backend, result, seed, seconds };
  if (file === undefined) console.log(JSON.stringify(line));
  else fs.appendFileSync(file, `${JSON.stringify(line)}\n`);
}
