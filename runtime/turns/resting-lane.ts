/**
 * Work that cannot be cut into slices, that takes long and that anybody may ask for: large requests that
 * are read, messages that are simulated. It is done one piece after the other, in turns of the clients that
 * ask for it, and behind each that was long the thread is left to everybody else, the making of blocks first,
 * for as long as it took.
 */
import { setTimeout as rest } from "node:timers/promises";
import { AppError } from "../../chain/errors.js";
import { SLICE_MS } from "../process/main-thread.js";
import type { OfClient } from "./client-lines.js";
import { Turns } from "./turns.js";

/** Codes of the lane's refusals. */
export type LaneErrorCode = "LANE_FULL";

/** Too much waits already. */
export class LaneError extends AppError<LaneErrorCode> {}

/** Pieces that wait for their turn, each with a request of up to some hundred KB. */
const MAX_WAITING = 1_000;

/** What is read in less than a slice, whatever it holds. */
const SMALL_BYTES = 8 * 1024;

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

/** Who asks for work, and until when it is wanted. */
export interface Asker extends OfClient {
  readonly signal: AbortSignal;
}

/** A lane; a process has one thread, and so one of them (`longWork`). */
export class RestingLane {
  private readonly turns = new Turns({
    maxRunning: 1,
    maxWaiting: MAX_WAITING,
    full: () => new LaneError("LANE_FULL", "too many long requests at once, try again"),
  });

  constructor(private readonly times = OWN_TIMES) {}

  /**
   * Does the work in its turn.
   * @param client as of `Turns.enter`
   * @throws LANE_FULL, the signal's reason where it is not wanted any more, and what the work throws
   */
  async run<Result>(signal: AbortSignal, work: () => Result, client?: string): Promise<Result> {
    const leave = await this.turns.enter(signal, client);
    const { ended, tookMs } = this.measured(signal, work);
    if (tookMs < SLICE_MS) leave();
    else void this.times.rest(tookMs).then(leave);
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

/** The process' own: a module's state, for there is one event loop and not one for each caller. */
export const longWork = new RestingLane();

/** Reads a request: at once where it is small, in its client's turn where it may take long. */
export async function readInTurn<Result>(
  sizeBytes: number,
  { signal, client }: Asker,
  read: () => Result,
): Promise<Result> {
  return sizeBytes <= SMALL_BYTES ? read() : longWork.run(signal, read, client);
}
