/**
 * Time slices for the making of blocks: it yields to the event loop after each slice, so that no
 * request waits for a block. Unlike `breathe` of main-thread.ts it has a slice in every turn of the
 * loop, however much other sliced work waits: nothing that a client asks may delay a block.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Steps } from "../../chain/steps/steps.js";

/** Longest stretch of work on a block before everybody else gets a turn; a step adds its own time. */
export const BLOCK_SLICE_MS = 5;

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
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      const pause = this.pause();
      if (pause !== undefined) await pause;
    }
  }

  private async next(): Promise<void> {
    await nextTurn();
    this.startMs = this.monotonicMs();
  }
}
