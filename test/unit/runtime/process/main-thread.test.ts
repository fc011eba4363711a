/** Long work in slices: many jobs together take no more of a turn of the event loop than one. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { EndlessWork, spin } from "../../../helpers/effort/endless-work.js";
import { openFileLimit } from "../../../../runtime/files/open-file-limit.js";
import { breathe, SLICE_MS } from "../../../../runtime/process/main-thread.js";
import { withLimit } from "../../../../runtime/process/task.js";
import {
  endlessSignal,
  OWN_WORK,
  ownerOf,
  setOwner,
  type WorkOwner,
} from "../../../../runtime/process/work-owner.js";

/** One step of work. */
const STEP_MS = 1;

const work = () => spin(STEP_MS);

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

describe("those who wait for their turn", () => {
  let endless: EndlessWork;
  afterEach(() => endless.end());

  /** Turns of the event loop that so many steps of a work take. */
  async function turnsOf(steps: number, owner: WorkOwner): Promise<number> {
    const signal = endlessSignal(owner);
    const from = endless.turns;
    for (let step = 0; step < steps; step++) {
      work();
      await breathe(signal);
    }
    return endless.turns - from;
  }

  it("are clients one after the other, however much one of them asks for", async () => {
    endless = new EndlessWork();
    endless.start(300, { client: "10.0.0.1" });
    await endless.begun();
    const works = [1, 2].map(() => turnsOf(20, { client: "10.0.0.2" }));
    for (const turns of await Promise.all(works)) expect(turns).toBeLessThan(100);
  });

  it("wait for the process' own work every second time, and not behind each other", async () => {
    endless = new EndlessWork();
    for (let client = 0; client < 20; client++) endless.start(15, { client: `10.0.0.${client}` });
    await endless.begun();
    expect(await turnsOf(20, OWN_WORK)).toBeLessThan(60);
    // Nor does the process' own work keep out clients.
    endless.start(50, OWN_WORK);
    expect(await turnsOf(3, { client: "10.0.1.1" })).toBeLessThan(300);
  });

  it("leave at their signal, and not when their turn comes", async () => {
    endless = new EndlessWork();
    endless.start(300, { client: "10.0.0.1" });
    await endless.begun();
    const ending = new AbortController();
    setOwner(ending.signal, { client: "10.0.0.1" });
    const from = endless.turns;
    const left = Promise.all(
      Array.from({ length: 20 }, async () => {
        for (;;) await breathe(ending.signal);
      }),
    );
    setImmediate(() => ending.abort(new Error("nobody wants it")));
    await expect(left).rejects.toThrow("nobody wants it");
    expect(endless.turns - from).toBeLessThan(20);
  });

  it("belong to whom the signal belongs that theirs follows", async () => {
    endless = new EndlessWork();
    endless.start(300, { client: "10.0.0.1" });
    await endless.begun();
    const signals = [new AbortController().signal, endlessSignal({ client: "10.0.0.2" })];
    const turns = await withLimit(signals, 60_000, async (signal) => {
      expect(ownerOf(signal)).toEqual({ client: "10.0.0.2" });
      return turnsOf(10, ownerOf(signal));
    });
    expect(turns).toBeLessThan(40);
  });
});

describe("the limit of open files", () => {
  it("is what the system allows this process", () => {
    expect(openFileLimit()).toBeGreaterThanOrEqual(256);
  });
});
