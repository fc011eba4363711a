/** The node's metrics count transactions of both kinds, and CometBFT's names have its label. */
import { expect, it } from "@jest/globals";
import { type NodeMetricSources, registerNodeMetrics } from "../../../node/compose/node-metrics.js";
import { type CommittedBlock, EventBus } from "../../../node/view/event-bus.js";
import { createMetrics } from "../../../runtime/process/metrics.js";

/** A block with transactions of the EVM, and of the Cosmos side, each of 65,000 gas. */
function blockOf(evm: number, cosmos: number): CommittedBlock {
  const one = { result: { gasUsed: 65_000n } };
  return {
    block: {
      header: { height: 1, gasUsed: 21_000n * BigInt(evm) },
      timeMs: 1_000,
      transactions: Array.from({ length: evm }, () => ({})),
      ...(cosmos === 0 ? {} : { cosmos: Array.from({ length: cosmos }, () => one) }),
    },
  } as unknown as CommittedBlock;
}

it("counts transactions of the Cosmos side, and their gas, with those of the EVM", async () => {
  const metrics = createMetrics({ processMetrics: false });
  const bus = new EventBus((error) => {
    throw error;
  });
  const consensus = { ownAddress: () => undefined, onReport: () => () => undefined };
  const chainId = "chain_6940-1";
  const none = () => new Proxy({}, { get: () => 0 });
  const network = { stats: none, isCatchingUp: () => false, networkHeight: () => 812 };
  const view = { head: none, oldest: none, supply: () => undefined };
  const pool = { counts: none, stats: () => ({ refusedTotal: [], evictedTotal: 0, sizeBytes: 0 }) };
  const sources = { bus, chainId, network, view, pool, haltReason: () => undefined };
  const blank = { height: () => 0, validators: () => undefined, progress: none };
  registerNodeMetrics(metrics, {
    ...sources,
    consensus: { ...consensus, ...blank },
    trieCacheBytes: () => 0,
  } as unknown as NodeMetricSources);
  const figure = async (name: string) => {
    // Rules and dashboards for CometBFT select by it.
    const labels = name.startsWith("cometbft_") ? `{chain_id="${chainId}"}` : "";
    const line = (await metrics.page())
      .split("\n")
      .find((one) => one.startsWith(`${name}${labels} `));
    return line === undefined ? undefined : Number(line.split(" ").at(-1));
  };
  bus.emit("block", blockOf(2, 0));
  bus.emit("block", blockOf(2, 3));
  expect(await figure("cometbft_consensus_num_txs")).toBe(5);
  bus.emit("block", blockOf(0, 1));
  expect(await figure("cometbft_consensus_num_txs")).toBe(1);
  expect(await figure("cometbft_consensus_total_txs")).toBe(8);
  expect(await figure("causeway_gas_used_total")).toBe(4 * 21_000 + 4 * 65_000);
  expect(await figure("causeway_network_height")).toBe(812);
  expect(await figure("causeway_halted")).toBe(0);
  // For whatever reason: operators at a planned upgrade read it as well.
  expect(await metrics.page()).toMatch(/^# HELP causeway_halted .*\bupgrade\b/m);
  expect(await figure("cometbft_p2p_peers")).toBe(0);
  const lines = (await metrics.page())
    .split("\n")
    .filter((line) => /^(cometbft|causeway)_/.test(line));
  expect(lines.length).toBeGreaterThan(40);
  for (const line of lines) {
    const hasLabel = line.includes(`chain_id="${chainId}"`);
    expect([line, hasLabel]).toEqual([line, line.startsWith("cometbft_")]);
  }
});
