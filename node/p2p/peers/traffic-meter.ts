/** Counts what a connection carries and finds out who sends more than a peer may. */
import type { Clock } from "../../../runtime/process/clock.js";
import { FlowMonitor } from "./flow-monitor.js";

/**
 * Budgets of peers are filled by what they are asked for to so many times their burst: most answers
 * are smaller than they may be, and what was not used must not grow for ever.
 */
export const MAX_BURSTS = 2;

/**
 * A budget that refills steadily: the usual way to allow bursts and to bound the mean. Amounts may
 * be bytes, messages or milliseconds.
 */
export class TokenBucket {
  private tokens: number;
  private filledAtMs: number;

  constructor(
    private readonly options: {
      readonly perSecond: number;
      readonly burst: number;
      /** Most that `give` fills it to; without bound by default. */
      readonly most?: number;
      readonly clock: Clock;
    },
  ) {
    this.tokens = options.burst;
    this.filledAtMs = options.clock.monotonicMs();
  }

  /**
   * Takes `cost` out, below zero if need be; false when there was not enough.
   * @param maxDebt what is missing counts up to this
   */
  take(cost: number, maxDebt = Number.POSITIVE_INFINITY): boolean {
    this.fill();
    this.tokens = Math.max(this.tokens - cost, -maxDebt);
    return this.tokens >= 0;
  }

  /** Adds what the other side was asked for, or what it should not have been charged. */
  give(more: number): void {
    this.fill();
    const { most = Number.POSITIVE_INFINITY } = this.options;
    this.tokens = Math.min(this.tokens + more, most);
  }

  /** What is in it now; below zero for a debt. */
  level(): number {
    this.fill();
    return this.tokens;
  }

  /** Milliseconds until a debt is paid; 0 without one. */
  waitMs(): number {
    return Math.max(0, (-this.level() / this.options.perSecond) * 1_000);
  }

  private fill(): void {
    const { perSecond, burst, clock } = this.options;
    const nowMs = clock.monotonicMs();
    const gained = ((nowMs - this.filledAtMs) / 1_000) * perSecond;
    this.filledAtMs = nowMs;
    // What `give` added stays; only the steady gain stops at the brim.
    if (this.tokens < burst) this.tokens = Math.min(burst, this.tokens + gained);
  }
}

/**
 * Bytes that a peer may send unasked, mean and burst: several times what the largest blocks and
 * the fullest mempool need, and little enough that one peer cannot occupy a core.
 */
const UNASKED_BYTES_PER_SECOND = 16 * 1024 * 1024;
const UNASKED_BURST_BYTES = 128 * 1024 * 1024;

/** What is told of a connection's traffic. */
export interface TrafficListener {
  /** The peer has sent more than it may unasked. */
  onFlood(): void;
  /** The peer was asked for so many bytes. */
  onExpected(sizeBytes: number): void;
}

/** What one connection carried. */
export class TrafficMeter {
  receivedBytes = 0;
  sentBytes = 0;
  /** Rates of both directions. */
  readonly receiving: FlowMonitor;
  readonly sending: FlowMonitor;
  private readonly budget: TokenBucket;

  constructor(
    clock: Clock,
    private readonly listener: TrafficListener,
  ) {
    const [perSecond, burst] = [UNASKED_BYTES_PER_SECOND, UNASKED_BURST_BYTES];
    this.receiving = new FlowMonitor(clock);
    this.sending = new FlowMonitor(clock);
    this.budget = new TokenBucket({ perSecond, burst, most: burst * MAX_BURSTS, clock });
  }

  /** Counts bytes from the peer, and reports it once they are too many. */
  received(sizeBytes: number): void {
    this.receivedBytes += sizeBytes;
    this.receiving.update(sizeBytes);
    if (!this.budget.take(sizeBytes)) this.listener.onFlood();
  }

  /** Counts bytes to the peer. */
  sent(sizeBytes: number): void {
    this.sentBytes += sizeBytes;
    this.sending.update(sizeBytes);
  }

  /** The peer was asked for this much. */
  expect(sizeBytes: number): void {
    this.budget.give(sizeBytes);
    this.listener.onExpected(sizeBytes);
  }
}
