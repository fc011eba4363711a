/**
 * Networks of four and of seven under load; some nodes are killed, frozen or cut off: no fork, and
 * what any node has answered for is mined once.
 */
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

/** Time for what was on its way when a network lost its majority. */
const SETTLE_MS = 1_500;

describe.each([
  // So many may be away; with one more the others have no two thirds.
  { validators: 4, spare: 1 },
  { validators: 7, spare: 2 },
])("a network of $validators", ({ validators, spare }) => {
  const ways = new Ways();
  let network: RunningNetwork;
  let nodes: readonly NetworkNode[];
  let traffic: RunningTraffic;

  beforeAll(async () => {
    network = await startNetwork({
      validators,
      blockIntervalMs: 200,
      hasShortTimeouts: true,
      peerPort: (link) => ways.open(link),
    });
    nodes = network.validators;
  });
  afterAll(async () => {
    ways.close();
    await network?.remove();
  });

  // Half of it goes to nodes that go away: what they have answered for must be mined as well.
  beforeEach(async () => {
    const targets = [...nodes.slice(0, 2), ...nodes.slice(-2)];
    traffic = await startTraffic(network, targets, TRANSFERS_PER_SECOND);
    await pause(1_000);
  });

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
    for (const { name: own, faults } of nodes) {
      expect([own, faults]).toEqual([own, []]);
    }
  });

  /** How many blocks of a span of time a node decides. */
  async function progress(index: number, spanMs: number): Promise<number> {
    const from = await node(index).height();
    await pause(spanMs);
    return (await node(index).height()) - from;
  }

  it("goes on while one is killed, and takes it back", async () => {
    await last().kill();
    expect(await progress(0, AWAY_MS)).toBeGreaterThan(5);
    await last().start();
  });

  it("goes on while one is stopped and started again", async () => {
    const before = await node(0).height();
    await last().stop();
    await last().start();
    await untilDeciding(nodes);
    expect(await node(0).height()).toBeGreaterThan(before);
  });

  it("goes on while one is frozen, and takes it back", async () => {
    last().freeze();
    expect(await progress(0, AWAY_MS)).toBeGreaterThan(5);
    last().thaw();
  });

  it("goes on while one is cut off, and takes it back", async () => {
    const others = nodes.slice(0, -1).map((_, index) => index);
    ways.split(others, [validators - 1]);
    expect(await progress(0, AWAY_MS)).toBeGreaterThan(5);
    ways.heal();
  });

  it(`halts while ${spare + 1} are dead, and goes on when one is back`, async () => {
    const dead = nodes.slice(-spare - 1);
    const alive = nodes.slice(0, -spare - 1);
    await Promise.all(dead.map((one) => one.kill()));
    await pause(SETTLE_MS);
    expect(await progress(0, HALT_MS)).toBe(0);
    const [first, ...rest] = dead;
    if (first === undefined) throw new RangeError("nobody is dead");
    await first.start();
    await untilDeciding([...alive, first]);
    await Promise.all(rest.map((one) => one.start()));
  });

  it("halts while it is split in two, and heals", async () => {
    const half = Math.floor(validators / 2);
    const indexes = nodes.map((_, index) => index);
    ways.split(indexes.slice(0, half), indexes.slice(half));
    await pause(SETTLE_MS);
    const halves = await Promise.all([progress(0, HALT_MS), progress(half, HALT_MS)]);
    expect(halves).toEqual([0, 0]);
    ways.heal();
  });

  it("loses nothing when all are killed at once", async () => {
    const to = await node(0).height();
    const known = await readBlocks(node(0), { from: 1, to });
    await Promise.all(nodes.map((one) => one.kill()));
    await Promise.all(nodes.map((one) => one.start()));
    await untilDeciding(nodes);
    expect(await readBlocks(node(0), { from: 1, to })).toEqual(known);
  });

  function node(index: number): NetworkNode {
    const one = nodes[index];
    if (one === undefined) throw new RangeError(`no node ${index}`);
    return one;
  }

  function last(): NetworkNode {
    return node(validators - 1);
  }
});
