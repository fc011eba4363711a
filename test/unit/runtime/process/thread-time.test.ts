/** Who pays for a stretch of work: what this thread did in it, and nothing that others did. */
import { describe, expect, it } from "@jest/globals";
import { threadClock, waitedMsOf } from "../../../../runtime/process/thread-time.js";

describe("the time that this thread worked", () => {
  /** A stretch of `passedMs`, in which the thread stood in the queue for `waitedMs` of it. */
  const stretch = (passedMs: number, waitedMs: number) => {
    const now = { passedMs: 1_000, waitedMs: 400 };
    const clock = threadClock({ passedMs: () => now.passedMs, waitedMs: () => now.waitedMs });
    const workedMs = clock.startWatch();
    now.passedMs += passedMs;
    now.waitedMs += waitedMs;
    return workedMs();
  };

  it("is what passed where nobody took the processor away", () => {
    expect([stretch(0.25, 0), stretch(40, 0)]).toEqual([0.25, 40]);
  });

  it("leaves out what it waited for a processor, whoever had it: this process' other threads too", () => {
    expect(stretch(40, 30)).toBe(10);
    expect(stretch(40, 40)).toBe(0);
  });

  it("is never less than nothing, though the two clocks are read one after the other", () => {
    expect(stretch(40, 40.1)).toBe(0);
  });

  it("is read where it is needed alone: a short stretch asks once", () => {
    let reads = 0;
    const waitedMs = () => {
      reads++;
      return 0;
    };
    const clock = threadClock({ passedMs: () => 7, waitedMs });
    expect(clock.startWatch()()).toBe(0);
    expect(reads).toBe(1);
  });
});

describe("the time that Linux says a thread waited", () => {
  it("is the second number of schedstat, in nanoseconds", () => {
    expect(waitedMsOf("77644673 3292276 42\n")).toBe(3.292276);
  });

  it("is unknown where the system says nothing", () => {
    expect(["", "0 0 0\n", "a b c\n"].map(waitedMsOf)).toEqual([undefined, undefined, undefined]);
  });
});
