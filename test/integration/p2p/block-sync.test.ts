/** A node joins a chain of 500 blocks from several peers, one of which lies. */
import { afterEach, describe, expect, it } from "@jest/globals";
import type { DecidedBlock } from "../../../node/consensus/consensus-ports.js";
import { until } from "../../helpers/until.js";
import { FakeChain, hashOf, trueBlock } from "./fakes.js";
import { connected, startNode, stopNode, stopNodes } from "./support.js";

afterEach(stopNodes);

const HEIGHT = 500;
const { signal } = new AbortController();

/** A block whose content was tampered with. */
function falsified(decided: DecidedBlock): DecidedBlock {
  const { block, commit } = decided;
  return { commit, block: { ...block, header: { ...block.header, appHash: hashOf("lie") } } };
}

describe("block sync", () => {
  it("gets every block from the honest peers and bans the liar", async () => {
    // Its last block nobody else has: whatever else it is asked for, that one it will be.
    const lie = (decided: DecidedBlock) =>
      decided.block.header.height % 7 === HEIGHT % 7 ? falsified(decided) : decided;
    const servers = await Promise.all([
      startNode({ chain: new FakeChain(HEIGHT) }),
      startNode({ chain: new FakeChain(HEIGHT) }),
      startNode({ chain: new FakeChain(HEIGHT + 7, { lie }) }),
    ]);
    const persistentPeers = servers.map(({ address }) => address);
    const joiner = await startNode({ persistentPeers });
    await connected([joiner, 3]);
    expect(joiner.network.isCatchingUp()).toBe(true);
    await joiner.network.catchUp({ signal, mayBeFirst: false });
    expect(joiner.network.isCatchingUp()).toBe(false);
    expect(joiner.chain.blocks).toEqual(Array.from({ length: HEIGHT }, (_, i) => trueBlock(i + 1)));
    await connected([joiner, 2]);
    const liar = servers[2]?.key.nodeId;
    expect(joiner.network.peers().map(({ nodeId }) => nodeId)).not.toContain(liar);
    // The work was shared.
    const [first, second] = servers.map(({ chain }) => chain.served.length);
    expect(Math.min(first ?? 0, second ?? 0)).toBeGreaterThan(50);
  });

  it("goes on where it was after the node was stopped", async () => {
    const server = await startNode({ chain: new FakeChain(HEIGHT) });
    const chain = new FakeChain(0, { applyMs: 1 });
    const joiner = await startNode({ chain, persistentPeers: [server.address] });
    const stopping = new AbortController();
    const run = joiner.network.catchUp({ signal: stopping.signal, mayBeFirst: false });
    await until(() => chain.height() >= 150, { timeoutMs: 10_000 });
    stopping.abort(new Error("stop"));
    await expect(run).rejects.toThrow("stop");
    await stopNode(joiner);
    expect(chain.height()).toBeLessThan(HEIGHT);
    const before = chain.appliedCount;
    const again = await startNode({ key: joiner.key, chain, persistentPeers: [server.address] });
    await again.network.catchUp({ signal, mayBeFirst: false });
    expect(chain.height()).toBe(HEIGHT);
    expect(chain.appliedCount - before).toBeLessThanOrEqual(HEIGHT - before + 1);
  });

  it("moves blocks of a megabyte", async () => {
    const big = new FakeChain(0);
    for (let height = 1; height <= 12; height++) big.blocks.push(trueBlock(height, 1_500_000));
    const server = await startNode({ chain: big });
    const joiner = await startNode({ persistentPeers: [server.address] });
    await joiner.network.catchUp({ signal, mayBeFirst: false });
    expect(joiner.chain.height()).toBe(12);
    const [transaction] = joiner.chain.blocks.at(-1)?.block.transactions ?? [];
    const [sent] = trueBlock(12, 1_500_000).block.transactions;
    expect(Buffer.compare(transaction ?? new Uint8Array(0), sent ?? new Uint8Array(0))).toBe(0);
  });

  it("keeps a validator that knows nobody from nothing", async () => {
    const alone = await startNode({ pex: true });
    const order: string[] = [];
    const nextTurn = new Promise((resolve) => setImmediate(resolve));
    const caughtUp = alone.network.catchUp({ signal, mayBeFirst: true });
    await Promise.all([
      caughtUp.then(() => order.push("caught up")),
      nextTurn.then(() => order.push("next turn")),
    ]);
    expect(order).toEqual(["caught up", "next turn"]);
    expect(alone.network.isCatchingUp()).toBe(false);
  });

  it("lets one that knows nobody, and lacks blocks that it signed, wait for who dials in", async () => {
    const lacking = await startNode();
    const done = lacking.network.catchUp({ signal, mayBeFirst: true, provenHeight: 3 });
    expect(lacking.network.isCatchingUp()).toBe(true);
    const chain = new FakeChain(4);
    await startNode({ chain, persistentPeers: [lacking.address] });
    await done;
    expect(lacking.chain.height()).toBe(4);
  });

  it("lets the first validators of a chain begin, at the same height", async () => {
    const first = await startNode();
    const second = await startNode({ persistentPeers: [first.address] });
    await Promise.all([
      first.network.catchUp({ signal, mayBeFirst: true }),
      second.network.catchUp({ signal, mayBeFirst: true }),
    ]);
    expect([first.network.isCatchingUp(), second.network.isCatchingUp()]).toEqual([false, false]);
  });
});
