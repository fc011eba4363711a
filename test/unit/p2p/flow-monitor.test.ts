/** Rates of a connection, by the formulas of CometBFT's libs/flowrate. */
import { describe, expect, it } from "@jest/globals";
import { FlowMonitor } from "../../../node/p2p/peers/flow-monitor.js";

describe("a flow monitor", () => {
  it("samples by tenths of a second and averages over a second", () => {
    let nowMs = 1_000;
    const clock = { nowMs: () => 1_700_000_000_000 + nowMs, monotonicMs: () => nowMs };
    const monitor = new FlowMonitor(clock);
    expect(monitor.status()).toEqual({
      startTimeMs: 1_700_000_001_000,
      totalBytes: 0,
      sampleCount: 0,
      instantRate: 0,
      currentRate: 0,
      averageRate: 0,
      peakRate: 0,
      durationMs: 0,
      idleMs: 0,
    });
    nowMs += 50;
    monitor.update(300);
    expect(monitor.status()).toMatchObject({ totalBytes: 0, sampleCount: 0, idleMs: 0 });
    nowMs += 50;
    monitor.update(200);
    expect(monitor.status()).toMatchObject({
      totalBytes: 500,
      sampleCount: 1,
      instantRate: 5_000,
      currentRate: 5_000,
      averageRate: 5_000,
      durationMs: 100,
    });
    nowMs += 1_000;
    // weight = exp(-1): 0 + 0.36788 * (5,000 - 0)
    expect(monitor.status()).toMatchObject({
      totalBytes: 500,
      sampleCount: 2,
      instantRate: 0,
      currentRate: 1_839,
      averageRate: 455,
      peakRate: 5_000,
      durationMs: 1_100,
      idleMs: 1_000,
    });
  });
});
