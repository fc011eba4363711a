/**
 * Faults from outside under load: frozen processes that come back, a database that dies, random
 * kills of anything, and everything at once.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { FaultBench, faultSeed, pause } from "../helpers/faults/bench.js";
import {
  killNow,
  KIT_PROCESSES,
  type KitProcessName,
  livingPid,
  untilAllReady,
  untilReplaced,
} from "../helpers/faults/processes.js";
import { startSecondWorker } from "../helpers/faults/second-worker.js";
import { kitOffset } from "../helpers/kit.js";

const ROUNDS = 20;
const PROVE_EVERY = 5;

/** The supervisor gives up after five deaths in a row within 10 s each; that is another test. */
const MAX_QUICK_KILLS = 3;
const QUICK_MS = 15_000;

/** Longest time that a process is frozen: longer than the lease of the hot wallet. */
const MAX_FREEZE_MS = 4_000;

/** Longest wait between two strikes: they shall meet every part of the work. */
const MAX_GAP_MS = 1_500;

describe("a kit under load", () => {
  let bench: FaultBench;

  beforeAll(async () => {
    bench = await FaultBench.open({ seed: faultSeed(), portOffset: kitOffset(3) });
  });
  afterAll(() => bench?.close());

  const prove = async (what: string): Promise<void> => {
    const figures = await bench.prove();
    console.log(`${what}: ${JSON.stringify(figures)}`);
    expect(figures.witnessedBlocks).toBeGreaterThan(0);
  };

  it("survives a frozen worker that comes back after another one took over", async () => {
    for (const round of [1, 2, 3]) {
      await bench.underLoad(async () => {
        const second = await startSecondWorker(bench.kit);
        try {
          await pause(bench.random.integer(MAX_GAP_MS));
          const zombie = livingPid(bench.kit.home, "withdrawal-worker");
          process.kill(zombie, "SIGSTOP");
          bench.exchange.withdrawalUrl = second.url;
          try {
            await second.untilWorking();
            const asked = bench.exchange.requests.length;
            await bench.exchange.untilEnded(asked);
          } finally {
            process.kill(zombie, "SIGCONT");
          }
          bench.exchange.withdrawalUrl = undefined;
          await bench.exchange.untilEnded(bench.exchange.requests.length);
          // It notices by itself that it has lost the wallet; nobody has to end it.
          expect(bench.kit.output()).not.toContain("withdrawal-worker: it");
          expect(livingPid(bench.kit.home, "withdrawal-worker")).toBe(zombie);
        } finally {
          bench.exchange.withdrawalUrl = undefined;
          await second.stop();
        }
      });
      await prove(`zombie ${round}`);
    }
  });

  it.each(KIT_PROCESSES.filter((name) => name !== "postgres"))(
    "survives %s frozen for longer than every lease and time-out of a poll",
    async (name) => {
      await bench.underLoad(async () => {
        await pause(bench.random.integer(MAX_GAP_MS));
        const pid = livingPid(bench.kit.home, name);
        await freeze(pid, MAX_FREEZE_MS);
        await untilAllReady(bench.kit);
        expect(livingPid(bench.kit.home, name)).toBe(pid);
      });
      await prove(`${name} frozen`);
    },
  );

  it("survives kill -9 of PostgreSQL", async () => {
    await bench.underLoad(async () => {
      for (let round = 1; round <= 3; round += 1) {
        await pause(bench.random.integer(MAX_GAP_MS));
        const former = killNow(bench.kit.home, "postgres");
        await untilReplaced(bench.kit.home, "postgres", former);
        await untilAllReady(bench.kit);
      }
    });
    await prove("postgres killed three times");
  });

  it("survives random kills and freezes of anything", async () => {
    const { random } = bench;
    const quick = new Map<KitProcessName, { count: number; atMs: number }>();
    const isTired = (name: KitProcessName): boolean => {
      const last = quick.get(name);
      return (
        last !== undefined &&
        last.count >= MAX_QUICK_KILLS &&
        performance.now() - last.atMs < QUICK_MS
      );
    };
    for (let start = 1; start <= ROUNDS; start += PROVE_EVERY) {
      await bench.underLoad(async () => {
        for (let round = start; round < start + PROVE_EVERY; round += 1) {
          await pause(random.integer(MAX_GAP_MS));
          if (round % PROVE_EVERY === 0) {
            console.log(`round ${round}: kill -9 of everything`);
            await bench.restart("kill -9 of everything");
            quick.clear();
            continue;
          }
          const name = random.pick(KIT_PROCESSES.filter((each) => !isTired(each)));
          // A frozen postmaster alone means nothing: its backends work on.
          const isFreeze = name !== "postgres" && random.integer(4) === 0;
          console.log(`round ${round}: ${isFreeze ? "freeze" : "kill"} ${name}`);
          if (isFreeze) {
            await freeze(livingPid(bench.kit.home, name), random.integer(MAX_FREEZE_MS));
          } else {
            const count = (quick.get(name)?.count ?? 0) + 1;
            quick.set(name, { count, atMs: performance.now() });
            await untilReplaced(bench.kit.home, name, killNow(bench.kit.home, name));
          }
          await untilAllReady(bench.kit);
        }
      });
      await prove(`rounds up to ${start + PROVE_EVERY - 1}`);
    }
  });
});

async function freeze(pid: number, durationMs: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  try {
    await pause(durationMs);
  } finally {
    process.kill(pid, "SIGCONT");
  }
}
