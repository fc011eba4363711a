/** Counts what a connection carries and finds out who sends more than a peer may. */
import type { Clock } from "../../runtime/clock.js";

/**
 * A budget that refills steadily: the usual way to allow bursts and to bound the mean. Amounts may
 * be bytes or messages.
 */
export class TokenBucket {
  private level: number;
  private filledAtMs: number;

  constructor(
    private readonly options: {
      readonly perSecond: number;
      readonly burst: number;
      readonly clock: Clock;
    },
  ) {
    this.level = options.burst;
    this.filledAtMs = options.clock.monotonicMs();
  }

  /** Takes `amount` out, below zero if need be; false when there was not enough. */
  take(amount: number): boolean {
    const { perSecond, burst, clock } = this.options;
    const nowMs = clock.monotonicMs();
    const gained = ((nowMs - this.filledAtMs) / 1_000) * perSecond;
    this.filledAtMs = nowMs;
    // What `give` added stays; only the steady gain stops at the brim.
    if (this.level < burst) this.level = Math.min(burst, this.level + gained);
    this.level -= amount;
    return this.level >= 0;
  }

  /** Adds what the other side was asked for. */
  give(amount: number): void {
    this.level += amount;
  }
}

/**
 * Bytes that a peer may send unasked, mean and burst: several times what the largest blocks and
 * the fullest mempool need, and little enough that one peer cannot occupy a core.
 */
const UNASKED_BYTES_PER_SECOND = 16 * 1024 * 1024;
const UNASKED_BURST_BYTES = 128 * 1024 * 1024;

/** What one connection carried. */
export class TrafficMeter {
  receivedBytes = 0;
  sentBytes = 0;
  private readonly budget: TokenBucket;

  constructor(
    clock: Clock,
    private readonly onFlood: () => void,
  ) {
    const [perSecond, burst] = [UNASKED_BYTES_PER_SECOND, UNASKED_BURST_BYTES];
    this.budget = new TokenBucket({ perSecond, burst, clock });
  }

  /** Counts bytes from the peer, and reports it once they are too many. */
  received(sizeBytes: number): void {
    this.receivedBytes += sizeBytes;
    if (!this.budget.take(sizeBytes)) this.onFlood();
  }

  /** Counts bytes to the peer. */
  sent(sizeBytes: number): void {
    this.sentBytes += sizeBytes;
  }

  /** The peer was asked for this much. */
  expect(sizeBytes: number): void {
    this.budget.give(sizeBytes);
  }
}
