/** Two nodes join a chain of two thousand blocks: by executing all of them, and by state sync. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { evmBatch } from "../calls.js";
import { auditChain } from "../chain-audit.js";
import { type RunningNetwork, untilHeight, writeNetwork } from "../network.js";
import {
  deployContracts,
  expectSameState,
  strike,
  untilJoined,
  untilSnapshot,
  writeAppSetting,
  writeStateSync,
} from "../state-sync-stage.js";
import { startTraffic } from "../traffic.js";

const BLOCKS = 2_000;
const BLOCK_INTERVAL_MS = 50;
const SNAPSHOT_INTERVAL = 500;
const TRANSFERS_PER_SECOND = 40;
/** Five questions about each go in one batch of at most 1,000. */
const CONTRACTS = 150;

/** Time for all blocks on a busy machine, where the interval is not held. */
const CHAIN_TIMEOUT_MS = 1_200_000;

describe("two nodes that join a long chain", () => {
  let network: RunningNetwork;
  let contracts: readonly string[] = [];

  beforeAll(async () => {
    const plan = { validators: 2, fullNodes: 2, blockIntervalMs: BLOCK_INTERVAL_MS };
    network = await writeNetwork(plan);
    for (const node of network.validators) {
      writeAppSetting(node, "snapshot-interval", String(SNAPSHOT_INTERVAL));
    }
    await Promise.all(network.validators.map((node) => node.start()));
    await untilHeight(network.validators, 2);
    contracts = await deployContracts(network, CONTRACTS);
    const traffic = await startTraffic(network, network.validators, TRANSFERS_PER_SECOND);
    const startedMs = performance.now();
    await untilHeight(network.validators, BLOCKS + 5, CHAIN_TIMEOUT_MS);
    const seconds = (performance.now() - startedMs) / 1_000;
    const { accepted } = await traffic.stop();
    await untilSnapshot(network.validators, BLOCKS);
    console.log(`${BLOCKS} blocks in ${seconds.toFixed(0)} s, ${accepted.length} transfers`);
  }, CHAIN_TIMEOUT_MS + 300_000);
  afterAll(async () => {
    await network?.remove();
  });

  it("come to the same state, each killed on the way", async () => {
    const [first] = network.validators;
    const [byBlocks, byState] = network.fullNodes;
    if (first === undefined || byBlocks === undefined || byState === undefined) throw new Error();
    const startedMs = performance.now();
    await byBlocks.start();
    await strike(byBlocks, async () => (await byBlocks.heightIfAnswered()) > 200);
    const blockSeconds = await untilJoined(byBlocks, startedMs);
    const blocksPerSecond = (await byBlocks.height()) / blockSeconds;

    const servers = network.validators.map(({ cometUrl }) => cometUrl);
    await writeStateSync(byState, { trusted: first, trustHeight: BLOCKS - 100, servers });
    const stateStartedMs = performance.now();
    await byState.start();
    await strike(byState, () => /state sync (fetches|restores)/.test(byState.output));
    const stateSeconds = await untilJoined(byState, stateStartedMs);
    console.log(
      `by blocks: ${blockSeconds.toFixed(1)} s, ${blocksPerSecond.toFixed(0)} blocks/s; ` +
        `by state sync: ${stateSeconds.toFixed(1)} s for ${await byState.height()} blocks`,
    );

    const all = [...network.validators, ...network.fullNodes];
    const height = await first.height();
    await untilHeight(all, height + 5);
    await auditChain([...network.validators, byBlocks], height + 5);
    await expectSameState(byState, first, contracts);
    await expectSameState(byState, byBlocks, contracts);
    const pruned = await evmBatch(byState, [
      { method: "eth_getBalance", params: [contracts[0], "0x10"] },
      { method: "eth_getProof", params: [contracts[0], [], "0x10"] },
    ]);
    for (const { error } of pruned) expect(error?.code).toBe(4444);
    expect(byState.output).not.toMatch(/"level":"(error|fatal)"/);
  }, 900_000);
});
