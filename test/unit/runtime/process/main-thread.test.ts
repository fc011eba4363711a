/** Long work in slices: many jobs together take no more of a turn of the event loop than one. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { openFileLimit } from "../../../../runtime/files/open-file-limit.js";
import { breathe, SLICE_MS } from "../../../../runtime/process/main-thread.js";

/** One step of work. */
const STEP_MS = 1;

function work(): void {
  const endMs = performance.now() + STEP_MS;
  while (performance.now() < endMs);
}

describe("sliced work", () => {
  let timer: NodeJS.Immediate | undefined;
  afterEach(() => clearImmediate(timer));

  it("shares one slice of each turn among all jobs, and every job ends", async () => {
    const stepsByTurn: number[] = [0];
    const nextTurn = () => {
      stepsByTurn.push(0);
      timer = setImmediate(nextTurn);
    };
    nextTurn();
    const job = async () => {
      for (let step = 0; step < 20; step++) {
        work();
        stepsByTurn[stepsByTurn.length - 1] = (stepsByTurn.at(-1) ?? 0) + 1;
        await breathe();
      }
    };
    // Each does its first step when it is started: nobody can wait before.
    await Promise.all(Array.from({ length: 5 }, job));
    const [, first = 0, ...others] = stepsByTurn;
    expect(first).toBeLessThanOrEqual(SLICE_MS / STEP_MS + 5);
    expect(Math.max(...others)).toBeLessThanOrEqual(SLICE_MS / STEP_MS + 1);
    expect(stepsByTurn.reduce((sum, count) => sum + count, 0)).toBe(100);
  });

  it("ends with its signal, waiting or not", async () => {
    const ending = new AbortController();
    const steps: number[] = [];
    const job = async () => {
      for (let step = 0; ; step++) {
        work();
        steps.push(step);
        await breathe(ending.signal);
      }
    };
    setTimeout(() => ending.abort(new Error("nobody wants it")), 5);
    await expect(job()).rejects.toThrow("nobody wants it");
    expect(steps.length).toBeGreaterThan(0);
    expect(() => breathe(ending.signal)).toThrow("nobody wants it");
  });
});

describe("the limit of open files", () => {
  it("is what the system allows this process", () => {
    expect(openFileLimit()).toBeGreaterThanOrEqual(256);
  });
});
