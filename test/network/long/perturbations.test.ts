/** Four validators under load; some are killed, frozen or cut off: no fork, nothing is lost. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { setTimeout as pause } from "node:timers/promises";
import { auditChain, compareMined, readBlocks } from "../chain-audit.js";
import { type NetworkNode, type RunningNetwork, startNetwork, untilDeciding } from "../network.js";
import { Ways } from "../proxy.js";
import { type RunningTraffic, startTraffic, untilMined } from "../traffic.js";

const TRANSFERS_PER_SECOND = 100;

/** How long a node is away. */
const AWAY_MS = 10_000;

/** A halted chain is watched for so long; it would decide 15 blocks. */
const HALT_MS = 3_000;

describe("a network of four", () => {
  const ways = new Ways();
  let network: RunningNetwork;
  let nodes: readonly NetworkNode[];
  let traffic: RunningTraffic;

  beforeAll(async () => {
    network = await startNetwork({
      validators: 4,
      blockIntervalMs: 200,
      hasShortTimeouts: true,
      peerPort: (link) => ways.open(link),
    });
    nodes = network.validators;
  }, 180_000);
  afterAll(async () => {
    ways.close();
    await network?.remove();
  }, 60_000);

  // The first two are never killed: what they accept cannot be lost with a client's connection.
  beforeEach(async () => {
    traffic = await startTraffic(network, nodes.slice(0, 2), TRANSFERS_PER_SECOND);
    await pause(1_000);
  }, 120_000);

  /** What holds after every perturbation. */
  afterEach(async () => {
    const startMs = performance.now();
    await untilDeciding(nodes);
    const backMs = Math.round(performance.now() - startMs);
    const { accepted } = await traffic.stop();
    await untilMined(nodes, accepted);
    const height = Math.min(...(await Promise.all(nodes.map((one) => one.height()))));
    const blocks = await auditChain(nodes, height);
    const name = expect.getState().currentTestName;
    console.log(`${name}: ${accepted.length} transfers, all decide ${backMs} ms after`);
    expect(compareMined(blocks, accepted)).toEqual({ lost: [], repeated: [] });
    for (const { name: own, output } of nodes) {
      expect([own, output.match(/"level":"(error|fatal)".*/g)]).toEqual([own, null]);
    }
  }, 180_000);

  /** How many blocks of a span of time a node decides. */
  async function progress(index: number, spanMs: number): Promise<number> {
    const from = await node(index).height();
    await pause(spanMs);
    return (await node(index).height()) - from;
  }

  it("goes on while one is killed, and takes it back", async () => {
    await node(3).kill();
    expect(await progress(0, AWAY_MS)).toBeGreaterThan(5);
    await node(3).start();
  }, 120_000);

  it("goes on while one is frozen, and takes it back", async () => {
    node(3).freeze();
    expect(await progress(0, AWAY_MS)).toBeGreaterThan(5);
    node(3).thaw();
  }, 120_000);

  it("goes on while one is cut off, and takes it back", async () => {
    ways.split([0, 1, 2], [3]);
    expect(await progress(0, AWAY_MS)).toBeGreaterThan(5);
    ways.heal();
  }, 120_000);

  it("halts while two are dead, and goes on when one is back", async () => {
    await Promise.all([node(2).kill(), node(3).kill()]);
    // What was decided when they died may still arrive.
    await pause(1_000);
    expect(await progress(0, HALT_MS)).toBe(0);
    await node(2).start();
    await untilDeciding(nodes.slice(0, 3));
    await node(3).start();
  }, 120_000);

  it("halts while it is split in two halves, and heals", async () => {
    ways.split([0, 1], [2, 3]);
    await pause(1_000);
    const halves = await Promise.all([progress(0, HALT_MS), progress(2, HALT_MS)]);
    expect(halves).toEqual([0, 0]);
    ways.heal();
  }, 120_000);

  it("loses nothing when all are killed at once", async () => {
    await traffic.stop();
    const heights = await Promise.all(nodes.map((one) => one.height()));
    const known = await readBlocks(node(0), { from: 1, to: heights[0] ?? 0 });
    await Promise.all(nodes.map((one) => one.kill()));
    await Promise.all(nodes.map((one) => one.start()));
    await untilDeciding(nodes);
    const again = await readBlocks(node(0), { from: 1, to: heights[0] ?? 0 });
    expect(again).toEqual(known);
  }, 180_000);

  function node(index: number): NetworkNode {
    const one = nodes[index];
    if (one === undefined) throw new RangeError(`no node ${index}`);
    return one;
  }
});
