/** Long work lets others have their turn after each slice, and only then. */
import { describe, expect, it } from "@jest/globals";
import type { Steps } from "../../../../chain/steps/steps.js";
import { BLOCK_SLICE_MS, Slices } from "../../../../runtime/process/slices.js";

/** A clock that a test moves. */
class Hand {
  nowMs = 1_000;
  readonly read = (): number => this.nowMs;
}

/** Steps that take so long each; notes when each is done. */
function* work(hand: Hand, stepMs: number, done: string[], count: number): Steps<string> {
  for (let index = 0; index < count; index += 1) {
    hand.nowMs += stepMs;
    done.push(`step ${index}`);
    yield;
  }
  return "made";
}

describe("slices", () => {
  it("gives the others a turn when a slice is over", async () => {
    const hand = new Hand();
    const done: string[] = [];
    setImmediate(() => done.push("other"));
    const half = BLOCK_SLICE_MS / 2;
    await expect(new Slices(hand.read).run(work(hand, half, done, 4))).resolves.toBe("made");
    expect(done).toEqual(["step 0", "step 1", "other", "step 2", "step 3"]);
  });

  it("does not wait for anybody within a slice", async () => {
    const hand = new Hand();
    const done: string[] = [];
    setImmediate(() => done.push("other"));
    await new Slices(hand.read).run(work(hand, BLOCK_SLICE_MS / 100, done, 50));
    expect(done).toHaveLength(50);
    expect(done).not.toContain("other");
  });

  it("looks at the clock less often than steps are small, and at once when they are not", async () => {
    const hand = new Hand();
    let looks = 0;
    const clock = () => {
      looks += 1;
      return hand.nowMs;
    };
    let turnMs = hand.nowMs;
    let longestMs = 0;
    function* mixed(): Steps<void> {
      for (let index = 0; index < 2_000; index += 1) {
        const isLarge = index >= 1_000 && index < 1_100;
        setImmediate(() => {
          turnMs = hand.nowMs;
        });
        hand.nowMs += isLarge ? 1 : 0.001;
        longestMs = Math.max(longestMs, hand.nowMs - turnMs);
        yield;
      }
    }
    await new Slices(clock).run(mixed());
    expect(looks).toBeLessThan(600);
    // The first large ones go by as if they were small.
    expect(longestMs).toBeLessThan(BLOCK_SLICE_MS + 16 + 1);
  });

  it("counts a slice from the turn in which it begins", async () => {
    const hand = new Hand();
    const slices = new Slices(hand.read);
    expect(slices.pause()).toBeUndefined();
    hand.nowMs += BLOCK_SLICE_MS;
    setImmediate(() => {
      hand.nowMs += 100 * BLOCK_SLICE_MS;
    });
    await slices.pause();
    expect(slices.pause()).toBeUndefined();
  });

  it("throws what the work throws, in whatever slice", async () => {
    const hand = new Hand();
    function* failing(): Steps<void> {
      yield* work(hand, BLOCK_SLICE_MS, [], 3);
      throw new RangeError("it does not add up");
    }
    await expect(new Slices(hand.read).run(failing())).rejects.toThrow("it does not add up");
  });
});
