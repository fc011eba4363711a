/** Long work takes turns, and leaves as much of the thread to others as it takes. */
import { describe, expect, it } from "@jest/globals";
import { RestingLane } from "../../../../runtime/turns/resting-lane.js";

/** A lane whose work takes as long as it says; rests end when the test says so. */
function newLane() {
  let nowMs = 0;
  const rests: number[] = [];
  const ends: (() => void)[] = [];
  const lane = new RestingLane({
    monotonicMs: () => nowMs,
    rest: (ms) => {
      rests.push(ms);
      return new Promise<void>((resolve) => {
        ends.push(resolve);
      });
    },
  });
  const log: string[] = [];
  const signal = new AbortController().signal;
  const run = (name: string, ms: number, client?: string) =>
    lane.run(
      signal,
      () => {
        log.push(name);
        nowMs += ms;
        if (name.startsWith("bad")) throw new Error(name);
        return name;
      },
      client,
    );
  const settle = () =>
    new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  const endRest = async () => {
    ends.shift()?.();
    await settle();
  };
  return { lane, run, log, rests, settle, endRest };
}

describe("pieces of long work", () => {
  it("that are long are followed by a rest of the same length, also where they fail", async () => {
    const { run, log, rests, settle, endRest } = newLane();
    const answers = Promise.allSettled([run("a", 40), run("bad", 25), run("b", 100), run("c", 1)]);
    await settle();
    expect([log, rests]).toEqual([["a"], [40]]);
    await endRest();
    expect([log, rests]).toEqual([
      ["a", "bad"],
      [40, 25],
    ]);
    await endRest();
    expect(log).toEqual(["a", "bad", "b"]);
    await endRest();
    expect(log).toEqual(["a", "bad", "b", "c"]);
    expect(
      (await answers).map((one) => (one.status === "fulfilled" ? one.value : "failed")),
    ).toEqual(["a", "failed", "b", "c"]);
    expect(rests).toEqual([40, 25, 100]);
  });

  it("that are short follow each other without one, and each is answered before the next", async () => {
    const { run, log, rests } = newLane();
    const names = Array.from({ length: 50 }, (_, index) => `${index}`);
    expect(await Promise.all(names.map((name) => run(name, 1)))).toEqual(names);
    expect([log, rests]).toEqual([names, []]);
  });

  it("are refused when a thousand wait, and not run when their client is gone", async () => {
    const { lane, run, log, settle, endRest } = newLane();
    const first = run("first", 50);
    await settle();
    const gone = new AbortController();
    const waiting = Promise.allSettled(
      Array.from({ length: 1_000 }, () => lane.run(gone.signal, () => log.push("too late"))),
    );
    await expect(run("one more", 1)).rejects.toMatchObject({ code: "LANE_FULL" });
    gone.abort(new Error("the client is gone"));
    await endRest();
    expect(await first).toBe("first");
    expect((await waiting).every(({ status }) => status === "rejected")).toBe(true);
    expect(await run("next", 1)).toBe("next");
    expect(log).toEqual(["first", "next"]);
  });

  it("are of one client after the other, and the last in the longest line is refused", async () => {
    const { run, log, settle, endRest } = newLane();
    const works = Array.from({ length: 1_001 }, (_, index) => run(`a${index}`, 400, "a"));
    const ended = Promise.allSettled(works);
    await settle();
    const other = run("b", 1, "b");
    await expect(works.at(-1)).rejects.toMatchObject({ code: "LANE_FULL" });
    await endRest();
    expect(log).toEqual(["a0", "a1"]);
    await endRest();
    expect(await other).toBe("b");
    expect(log).toEqual(["a0", "a1", "b", "a2"]);
    for (let left = 3; left < 1_000; left++) await endRest();
    await ended;
  });

  it("leave the line when their client goes, and not when their turn comes", async () => {
    const { lane, run, log, settle } = newLane();
    const first = run("first", 50);
    const gone = new AbortController();
    const left = lane.run(gone.signal, () => log.push("too late"));
    gone.abort(new Error("the client is gone"));
    await expect(left).rejects.toThrow("the client is gone");
    await settle();
    expect([await first, log]).toEqual(["first", ["first"]]);
  });
});
