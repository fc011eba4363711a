/**
 * Time slices for the making of blocks: it yields to the event loop after each slice, so that no
 * request waits for a block. Unlike `breathe` of main-thread.ts it has a slice in every turn of the
 * loop, however much other sliced work waits: nothing that a client asks may delay a block.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Steps } from "../../chain/steps/steps.js";

/** Longest stretch of work on a block before everybody else gets a turn; a step adds its own time. */
export const BLOCK_SLICE_MS = 5;

/** Looking at the clock costs as much as a small step: that many of them may go by between two looks. */
const MOST_STEPS_PER_LOOK = 16;

/** Steps that took less than this together are small. */
const SMALL_STEPS_MS = 0.25;

/** The slices of one piece of work. */
export class Slices {
  private startMs: number;

  constructor(private readonly monotonicMs: () => number = () => performance.now()) {
    this.startMs = monotonicMs();
  }

  /** Waits for the next turn of the loop when the slice is over; nothing to wait for otherwise. */
  pause(): Promise<void> | undefined {
    return this.monotonicMs() - this.startMs < BLOCK_SLICE_MS ? undefined : this.next();
  }

  /** Does work in steps, in as many slices as it takes. @throws what the work throws */
  async run<Result>(steps: Steps<Result>): Promise<Result> {
    let stepsPerLook = 1;
    let lookedMs = this.monotonicMs();
    for (;;) {
      for (let done = 0; done < stepsPerLook; done++) {
        const step = steps.next();
        if (step.done === true) return step.value;
      }
      const nowMs = this.monotonicMs();
      const areSmall = nowMs - lookedMs < SMALL_STEPS_MS;
      stepsPerLook = areSmall ? Math.min(2 * stepsPerLook, MOST_STEPS_PER_LOOK) : 1;
      lookedMs = nowMs;
      if (nowMs - this.startMs < BLOCK_SLICE_MS) continue;
      await this.next();
      lookedMs = this.startMs;
    }
  }

  private async next(): Promise<void> {
    await nextTurn();
    this.startMs = this.monotonicMs();
  }
}
