/** 43 and 44: two of everything with the network cut between them; clocks that jump. */
import path from "node:path";
import { pathToFileURL } from "node:url";
import { pause } from "../../helpers/faults/bench.js";
import type { Direction } from "../../helpers/faults/proxy/tcp-proxy.js";
import { until } from "../../helpers/until.js";
import { assertHappened, type Scenario } from "./scenario.js";

/** Longer than a lease, and than the database bears an idle transaction. */
const CUT_MS = 6_500;

/** What the wall clocks of worker and watcher are off by, one after the other, in milliseconds. */
const CLOCK_STEPS = [600_000, -600_000, 1_000, -86_400_000, 0];

const clock = pathToFileURL(path.resolve("test/helpers/faults/lab/clock-steps.mjs")).href;
const STEPPED = {
  NODE_OPTIONS: `--import ${clock}`,
  CAUSEWAY_TEST_CLOCK_STEPS: CLOCK_STEPS.join(","),
};

/** The two. */
export const WORKERS: readonly Scenario[] = [
  {
    number: 43,
    name: "two workers and two watchers, cut off from database and queue each way in turn",
    async run(lab) {
      const workers = [lab.worker, await lab.addWorker()];
      const watchers = [lab.watcher, await lab.addWatcher()];
      for (const { process } of lab.members) await process.untilReady();
      const cuts: readonly (readonly Direction[])[] = [["up"], ["down"], ["up", "down"]];
      for (const directions of cuts) {
        const [worker, watcher] = [lab.random.pick(workers), lab.random.pick(watchers)];
        const other = workers.find((each) => each !== worker) ?? worker;
        lab.askAt(other);
        const working = lab.work(2);
        await pause(lab.random.integer(300));
        for (const member of [worker, watcher]) {
          member.database.hold(...directions);
          member.redis?.hold(...directions);
        }
        await pause(CUT_MS);
        for (const member of [worker, watcher]) {
          member.database.release();
          member.redis?.release();
        }
        await working;
        for (const { database } of [worker, watcher]) {
          const held = directions.reduce((sum, each) => {
            return sum + (database.hits.get(`held ${each}`) ?? 0);
          }, 0);
          assertHappened(held, "a word that was held back");
        }
      }
    },
  },
  {
    number: 44,
    name: "wall clocks jump by ten minutes and a day, forwards and back",
    setup: { workerEnv: STEPPED, watcherEnv: STEPPED },
    async run(lab) {
      for (const stepMs of CLOCK_STEPS) {
        const working = lab.work();
        for (const { process } of lab.members) process.signal("SIGUSR2");
        const heard = `clock off by ${stepMs} ms`;
        await until(() => lab.members.every(({ process }) => process.output.includes(heard)), {
          timeoutMs: 60_000,
          what: heard,
        });
        await working;
        await lab.customers.settled();
      }
    },
  },
];
