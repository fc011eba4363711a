/** What the node's metrics say of a block counts transactions of both kinds, as CometBFT's do. */
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
  registerNodeMetrics(metrics, { bus, consensus } as unknown as NodeMetricSources);
  const figure = async (name: string) => {
    const found = await metrics.registry.getSingleMetric(name)?.get();
    return found?.values[0]?.value;
  };
  bus.emit("block", blockOf(2, 0));
  bus.emit("block", blockOf(2, 3));
  expect(await figure("cometbft_consensus_num_txs")).toBe(5);
  bus.emit("block", blockOf(0, 1));
  expect(await figure("cometbft_consensus_num_txs")).toBe(1);
  expect(await figure("cometbft_consensus_total_txs")).toBe(8);
  expect(await figure("causeway_gas_used_total")).toBe(4 * 21_000 + 4 * 65_000);
});
