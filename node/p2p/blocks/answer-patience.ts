/**
 * How long an answer with blocks is waited for, on either side, and how long a node that catches up waits
 * for blocks in all: what comes gives more time, so that a large block may take as long as the line needs;
 * and that time is of the bytes alone, so that nobody is waited for by a byte now and then.
 */
import { MAX_BLOCK_BYTES } from "../../../chain/consensus/consensus-block.js";
import { joinSignals, type JoinedSignal } from "../../../runtime/process/task.js";

/** The rate below which an answer is too slow: 1 Mbit/s, CometBFT's `minRecvRate` of block sync. */
const LEAST_BYTES_PER_MS = 128;

/** The largest block and its commit. */
export const MAX_BLOCK_MESSAGE_BYTES = MAX_BLOCK_BYTES + 2 * 1024 * 1024;

/**
 * Time for an answer of which so much has come: at first `firstMs`, and for each byte what it takes at the
 * least rate. As the bytes of an answer are bounded, so is its time.
 */
export function answerTimeMs(firstMs: number, cameBytes: number): number {
  return firstMs + cameBytes / LEAST_BYTES_PER_MS;
}

/** How long the largest message comes at the least rate. */
export const LARGEST_MESSAGE_MS = answerTimeMs(0, MAX_BLOCK_MESSAGE_BYTES);

/** The time of one answer, as a signal that fires when it is over, or with one of others. */
export class AnswerLimit {
  private readonly joined: JoinedSignal;
  private timer: NodeJS.Timeout | undefined;
  private waitedMs = 0;

  /**
   * @param options `cameBytes` as it is whenever it is asked for
   */
  constructor(
    signals: readonly AbortSignal[],
    private readonly options: {
      readonly firstMs: number;
      readonly cameBytes: () => number;
    },
  ) {
    this.joined = joinSignals(signals);
    if (!this.signal.aborted) this.wait(options.firstMs);
    this.signal.addEventListener("abort", () => clearTimeout(this.timer), { once: true });
  }

  /** Fires when nobody waits any more. */
  get signal(): AbortSignal {
    return this.joined.signal;
  }

  /** The answer is here: leaves the other signals. */
  release(): void {
    clearTimeout(this.timer);
    this.joined.release();
  }

  private wait(durationMs: number): void {
    this.timer = setTimeout(() => this.look(durationMs), durationMs).unref();
  }

  private look(durationMs: number): void {
    this.waitedMs += durationMs;
    const { firstMs, cameBytes } = this.options;
    const leftMs = Math.ceil(answerTimeMs(firstMs, cameBytes()) - this.waitedMs);
    if (leftMs > 0) return this.wait(leftMs);
    this.joined.abort(new DOMException("the answer is too slow", "TimeoutError"));
  }
}
