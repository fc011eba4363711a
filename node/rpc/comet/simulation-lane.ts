/**
 * Simulations of Cosmos transactions: messages run without a pause, anybody may ask for them, and each
 * takes up to a transaction's share of a block. They run one after the other, and behind each that was
 * long the thread is left to everybody else, the making of blocks first, for as long as it took.
 */
import { setTimeout as rest } from "node:timers/promises";
import { SLICE_MS } from "../../../runtime/process/main-thread.js";
import { refused } from "./errors.js";

/** Simulations that wait for their turn, each with up to 128 KiB; more are told to come back. */
const MAX_WAITING = 1_000;

/** What the lane measures and rests by. */
export interface LaneTimes {
  readonly monotonicMs: () => number;
  /** Resolves after so many milliseconds. */
  readonly rest: (ms: number) => Promise<unknown>;
}

const OWN_TIMES: LaneTimes = {
  monotonicMs: () => performance.now(),
  rest: (ms) => rest(ms, undefined, { ref: false }),
};

/** The way in for all simulations of a node. */
export class SimulationLane {
  private last: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  constructor(private readonly times = OWN_TIMES) {}

  /** Runs the work in its turn. Throws INTERNAL when too many wait already. */
  async run<Result>(signal: AbortSignal, work: () => Result): Promise<Result> {
    if (this.waiting >= MAX_WAITING) throw refused("too many simulations at once, try again");
    this.waiting += 1;
    const turn = this.last.then(() => {
      this.waiting -= 1;
      return this.measured(signal, work);
    });
    this.last = turn.then(
      ({ tookMs }) => (tookMs < SLICE_MS ? undefined : this.times.rest(tookMs)),
      () => undefined,
    );
    const { ended } = await turn;
    return ended();
  }

  /** What the work came to, an error too: also that took its time. */
  private measured<Result>(signal: AbortSignal, work: () => Result) {
    const startMs = this.times.monotonicMs();
    let ended: () => Result;
    try {
      signal.throwIfAborted();
      const result = work();
      ended = () => result;
    } catch (error) {
      ended = () => {
        throw error;
      };
    }
    return { ended, tookMs: this.times.monotonicMs() - startMs };
  }
}
