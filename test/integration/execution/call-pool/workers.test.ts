/** Workers as threads: how they run, what follows where one cannot be made, and their end. */
import fs from "node:fs";
import os from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { createLogger, type Logger } from "../../../../runtime/process/logger.js";
import { until } from "../../../helpers/until.js";
import { CallBench, endless, request, signal } from "./call-bench.js";

/** Steps behind the usual priority of each thread of this process. */
function priorities(): Map<string, number> {
  const folder = "/proc/self/task";
  const threads = fs.readdirSync(folder).map((thread) => {
    // Behind the name, which may hold spaces: proc_pid_stat(5), field 19.
    const fields = fs.readFileSync(`${folder}/${thread}/stat`, "latin1").split(") ")[1] ?? "";
    return [thread, Number(fields.split(" ")[16])] as const;
  });
  return new Map(threads);
}

describe("call pool", () => {
  let bench: CallBench;

  beforeAll(async () => {
    bench = await CallBench.open();
  });
  afterAll(() => bench.close());

  it("has workers behind the node's own threads, and not behind everybody for ever", async () => {
    if (process.platform !== "linux") return; // Elsewhere a thread has no priority of its own.
    const before = priorities();
    await bench.open().call(request(), 3, { signal });
    const own = os.getPriority();
    const behind = [...priorities()].filter(([thread]) => !before.has(thread));
    const lowest = os.constants.priority.PRIORITY_LOW;
    expect(behind.map(([, steps]) => steps)).toContain(Math.min(own + 10, lowest));
  });

  it("refuses a call, and goes on, where no thread can be started", async () => {
    // What Node does not take for a file it refuses at once, as it does a thread that there is not.
    const pool = bench.open({ workerUrl: new URL("http://127.0.0.1/worker.js") });
    for (let count = 0; count < 2; count++) {
      await expect(pool.call(request(), 3, { signal })).rejects.toMatchObject({
        code: "CALL_WORKER_FAILED",
      });
    }
  });

  it("leaves to the other workers what waits where one cannot be made", async () => {
    const workers = bench.scarceWorkers();
    const errors = jest.fn();
    const quiet = createLogger({ component: "test", level: "silent" });
    const log = Object.assign(Object.create(quiet) as Logger, { error: errors });
    const held = [0, 1].map(() => Promise.withResolvers<void>());
    const asking = new Set<object>();
    let [phase, isBroken] = [0, false];
    const pool = bench.open({
      workerCount: 2,
      workerUrl: workers.url,
      restartMs: 600_000,
      log,
      stateReaderAt: (height) => {
        const reader = bench.chain.stores.state.readerAt(height);
        const job = {};
        const account = async (address: Address) => {
          asking.add(job);
          await held[phase]?.promise;
          return reader.account(address);
        };
        const broken = () => Promise.reject(new Error("disk on fire"));
        return { ...reader, account: isBroken ? broken : account };
      },
    });
    const calls = (count: number) =>
      Array.from({ length: count }, () => pool.call(request(), 3, { signal }));
    const both = calls(2);
    await until(() => asking.size === 2, { timeoutMs: 60_000, what: "two workers" });
    held[0]?.resolve();
    await Promise.all(both);

    // One of them is given up, and none takes its place.
    phase = 1;
    [workers.areThere, isBroken] = [false, true];
    const [broken] = calls(1);
    isBroken = false;
    const waiting = Promise.allSettled(calls(10));
    await expect(broken).rejects.toThrow("disk on fire");
    const { lookCount } = workers;
    for (let turn = 0; turn < 50; turn += 1) await nextTurn();
    held[1]?.resolve();
    const outcomes = new Set((await waiting).map(({ status }) => status));
    expect([...outcomes]).toEqual(["fulfilled"]);
    expect(workers.lookCount).toBe(lookCount);
    expect(errors).toHaveBeenCalledTimes(1);
  });

  it("makes a worker that could not be made as soon as it can be", async () => {
    const workers = bench.scarceWorkers();
    workers.areThere = false;
    const pool = bench.open({ workerUrl: workers.url, restartMs: 20 });
    await expect(pool.call(request(), 3, { signal })).rejects.toMatchObject({
      code: "CALL_WORKER_FAILED",
    });
    workers.areThere = true;
    expect(await pool.call(request(), 3, { signal })).toMatchObject({ outcome: "success" });
  });

  it("refuses all that wait where no worker can be made", async () => {
    const pool = bench.open({ workerCount: 2, workerUrl: new URL("http://127.0.0.1/worker.js") });
    const calls = Array.from({ length: 5 }, () => pool.call(request(), 3, { signal }));
    for (const refused of await Promise.allSettled(calls)) {
      expect(refused).toMatchObject({ reason: { code: "CALL_WORKER_FAILED" } });
    }
  });

  it("rejects jobs when the worker does not start", async () => {
    const broken = new URL("data:text/javascript,throw new Error('broken')");
    const pool = bench.open({ workerUrl: broken });
    await expect(pool.call(request(), 3, { signal })).rejects.toMatchObject({
      code: "CALL_WORKER_FAILED",
    });
  });

  it("ends at once and rejects what is open", async () => {
    const pool = bench.open({ gasCap: 10n ** 12n });
    await pool.call(request(), 3, { signal });
    const jobs = [pool.call(endless(), 3, { signal }), pool.call(request(), 3, { signal })];
    const settled = Promise.allSettled(jobs);
    await pool.close();
    for (const result of await settled) {
      expect(result).toMatchObject({ reason: { code: "CALL_POOL_CLOSED" } });
    }
    await expect(pool.call(request(), 3, { signal })).rejects.toMatchObject({
      code: "CALL_POOL_CLOSED",
    });
  });
});
