/** Runs of the tests at the same time on one machine: each has ports of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "@jest/globals";
import { firstWords } from "../../helpers/processes/endings.js";
import { kitOffset } from "../../helpers/kit.js";
import { freePort, MOST_WORKERS, RUNS } from "../../helpers/ports.js";

const { href } = pathToFileURL(path.resolve("bin", "testing", "test-ports.mjs"));

const ends: (() => Promise<unknown>)[] = [];
const endAll = () => Promise.all(ends.splice(0).map((end) => end()));
afterEach(endAll);

/** The place that a process takes; it has it until it is killed. */
async function claimed(firstPort: number): Promise<number> {
  const source = `import { claimRun } from ${JSON.stringify(href)};
    process.stdin.resume();
    console.log(await claimRun(${firstPort}));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  ends.push(() => {
    child.kill("SIGKILL");
    return exited;
  });
  return Number(await firstWords(child));
}

describe("runs at the same time", () => {
  it("have places of their own, which a killed one leaves to others", async () => {
    const firstPort = await freePort();
    const every = Array.from({ length: RUNS }, (_, place) => place);
    for (let round = 0; round < 2; round++) {
      const places = await Promise.all(every.map(() => claimed(firstPort)));
      expect(places.toSorted((one, other) => one - other)).toEqual(every);
      expect(every).toContain(await claimed(firstPort));
      await endAll();
    }
  });

  it("start no two kits of their workers at one offset", () => {
    const { CAUSEWAY_TEST_RUN, JEST_WORKER_ID } = process.env;
    const offsets: number[] = [];
    try {
      for (let run = 0; run < RUNS; run++) {
        for (let worker = 1; worker <= MOST_WORKERS; worker++) {
          Object.assign(process.env, { CAUSEWAY_TEST_RUN: run, JEST_WORKER_ID: worker });
          for (let slot = 0; slot < 5; slot++) offsets.push(kitOffset(slot));
        }
      }
    } finally {
      Object.assign(process.env, { CAUSEWAY_TEST_RUN, JEST_WORKER_ID });
    }
    expect(new Set(offsets).size).toBe(offsets.length);
    expect(Math.max(...offsets)).toBeLessThan(6_000);
  });
});
