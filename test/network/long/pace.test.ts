/** Blocks of two seconds under five hundred transfers a second: the pace of the public network. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { auditChain, compareMined, meanIntervalMs, quantile } from "../chain-audit.js";
import { type RunningNetwork, startNetwork, untilHeight } from "../network.js";
import { startTraffic, untilMined } from "../traffic.js";

const BLOCK_INTERVAL_MS = 2_000;

const BLOCKS = 30;

const TRANSFERS_PER_SECOND = 500;

describe("four validators at the public network's pace", () => {
  let network: RunningNetwork;

  beforeAll(async () => {
    network = await startNetwork({ validators: 4, blockIntervalMs: BLOCK_INTERVAL_MS });
  }, 180_000);
  afterAll(async () => {
    await network?.remove();
  }, 60_000);

  it("hold their interval and answer clients", async () => {
    const { validators } = network;
    const traffic = await startTraffic(network, validators, TRANSFERS_PER_SECOND);
    const from = Math.max(...(await Promise.all(validators.map((node) => node.height()))));
    await untilHeight(validators, from + BLOCKS);
    const report = await traffic.stop();
    await untilMined(validators, report.accepted);
    const height = Math.min(...(await Promise.all(validators.map((node) => node.height()))));
    const blocks = await auditChain(validators, height);
    const meanMs = meanIntervalMs(blocks.slice(from, from + BLOCKS + 1));
    const [p50, p99] = [0.5, 0.99].map((part) => Math.round(quantile(report.receiptMs, part)));
    console.log(
      `${BLOCKS} blocks, mean ${meanMs.toFixed(1)} ms; ${report.accepted.length} transfers, ` +
        `${report.perSecond}/s; receipts p50 ${p50} ms, p99 ${p99} ms`,
    );
    expect(compareMined(blocks, report.accepted)).toEqual({ lost: [], repeated: [] });
    expect(report.perSecond).toBeGreaterThanOrEqual(TRANSFERS_PER_SECOND * 0.98);
    expect(Math.abs(meanMs - BLOCK_INTERVAL_MS)).toBeLessThanOrEqual(100);
  }, 300_000);
});
