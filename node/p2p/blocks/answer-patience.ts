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
 * least rate.
 * @param othersBytes what came meanwhile of others that share its line: it may have had to wait for one of
 * them. More than the largest message does not count, or they would keep open for ever what is never given
 */
export function answerTimeMs(firstMs: number, cameBytes: number, othersBytes = 0): number {
  const sharedBytes = Math.min(othersBytes, MAX_BLOCK_MESSAGE_BYTES);
  return firstMs + (cameBytes + sharedBytes) / LEAST_BYTES_PER_MS;
}

/** How long the largest message comes at the least rate. */
export const LARGEST_MESSAGE_MS = answerTimeMs(0, MAX_BLOCK_MESSAGE_BYTES);

/** What one peer has brought: bytes of blocks. */
export interface Line {
  cameBytes: number;
}

/** What came of one answer, on a line that it shares. */
export class AnswerBytes {
  private cameBytes = 0;
  private readonly beforeBytes: number;

  constructor(private readonly line: Line) {
    this.beforeBytes = line.cameBytes;
  }

  /** So many bytes of a block came. */
  came(sizeBytes: number): void {
    this.cameBytes += sizeBytes;
    this.line.cameBytes += sizeBytes;
  }

  /** See `answerTimeMs`. */
  timeMs(firstMs: number): number {
    const { cameBytes, beforeBytes, line } = this;
    return answerTimeMs(firstMs, cameBytes, line.cameBytes - beforeBytes - cameBytes);
  }
}

/** The time of one answer, as a signal that fires when it is over, or with one of others. */
export class AnswerLimit {
  private readonly joined: JoinedSignal;
  private timer: NodeJS.Timeout | undefined;
  private waitedMs = 0;

  /**
   * @param timeMs of the answer, as it is whenever it is asked for
   */
  constructor(
    signals: readonly AbortSignal[],
    private readonly timeMs: () => number,
  ) {
    this.joined = joinSignals(signals);
    if (!this.signal.aborted) this.wait(timeMs());
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
    const leftMs = Math.ceil(this.timeMs() - this.waitedMs);
    if (leftMs > 0) return this.wait(leftMs);
    this.joined.abort(new DOMException("the answer is too slow", "TimeoutError"));
  }
}
