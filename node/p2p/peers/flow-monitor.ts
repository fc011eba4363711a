/**
 * The rate of a stream of bytes, measured as CometBFT measures it (libs/flowrate): samples of a
 * tenth of a second or more, and an exponential moving average over about a second.
 */
import type { Clock } from "../../../runtime/process/clock.js";

/** What a monitor has measured; rates in bytes a second. */
export interface FlowStatus {
  /** When it began, Unix milliseconds. */
  readonly startTimeMs: number;
  /** All bytes up to the last sample. */
  readonly totalBytes: number;
  readonly sampleCount: number;
  readonly instantRate: number;
  readonly currentRate: number;
  readonly averageRate: number;
  readonly peakRate: number;
  /** Time that the samples cover. */
  readonly durationMs: number;
  /** Time since the last byte. */
  readonly idleMs: number;
}

const SAMPLE_MS = 100;
const WINDOW_MS = 1_000;

/** Measures one direction of a connection. */
export class FlowMonitor {
  private readonly startTimeMs: number;
  private readonly startedMs: number;
  private sampledMs: number;
  private movedMs: number;
  private totalBytes = 0;
  private sampleBytes = 0;
  private sampleCount = 0;
  private instantRate = 0;
  private currentRate = 0;
  private peakRate = 0;

  constructor(private readonly clock: Clock) {
    this.startTimeMs = clock.nowMs();
    this.startedMs = clock.monotonicMs();
    this.sampledMs = this.startedMs;
    this.movedMs = this.startedMs;
  }

  /** Counts bytes that passed. */
  update(sizeBytes: number): void {
    const nowMs = this.clock.monotonicMs();
    if (sizeBytes > 0) this.movedMs = nowMs;
    this.sampleBytes += sizeBytes;
    const spanMs = nowMs - this.sampledMs;
    if (spanMs < SAMPLE_MS) return;
    this.instantRate = (this.sampleBytes / spanMs) * 1_000;
    this.peakRate = Math.max(this.peakRate, this.instantRate);
    // Longer samples carry more weight.
    const kept = this.sampleCount === 0 ? 0 : Math.exp(-spanMs / WINDOW_MS);
    this.currentRate = this.instantRate + kept * (this.currentRate - this.instantRate);
    this.totalBytes += this.sampleBytes;
    this.sampleCount++;
    this.sampleBytes = 0;
    this.sampledMs = nowMs;
  }

  /** What was measured up to now. */
  status(): FlowStatus {
    this.update(0);
    const durationMs = this.sampledMs - this.startedMs;
    const isMeasured = durationMs > 0;
    return {
      startTimeMs: this.startTimeMs,
      totalBytes: this.totalBytes,
      sampleCount: this.sampleCount,
      instantRate: isMeasured ? Math.round(this.instantRate) : 0,
      currentRate: isMeasured ? Math.round(this.currentRate) : 0,
      averageRate: isMeasured ? Math.round((this.totalBytes / durationMs) * 1_000) : 0,
      peakRate: Math.round(this.peakRate),
      durationMs,
      idleMs: this.clock.monotonicMs() - this.movedMs,
    };
  }
}
