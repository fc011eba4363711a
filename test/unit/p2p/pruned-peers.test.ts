/** Block sync among peers that have deleted their oldest blocks. */
import { describe, expect, it } from "@jest/globals";
import type { Height } from "../../../chain/hex.js";
import type { BlockSource } from "../../../node/p2p/blocks/block-protocol.js";
import type { SyncPeer } from "../../../node/p2p/blocks/block-peer.js";
import { BlockSync } from "../../../node/p2p/blocks/block-sync.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { until } from "../../helpers/until.js";
import { FakeChain, trueBlock } from "../../integration/p2p/fakes.js";

const HEIGHT = 900;
const BASE = 700;

/** A peer with the blocks from its base on; what it was asked for is noted. */
function peer(name: string, base: Height, asked: Height[]): SyncPeer {
  const source: BlockSource = {
    range: async () => ({ base, height: HEIGHT }),
    async blocks({ from, count }, { onBlock }) {
      for (let height = from; height < from + count; height++) {
        asked.push(height);
        onBlock(trueBlock(height), 500);
      }
      return count;
    },
  };
  return {
    nodeId: name.padEnd(40, "0") as NodeId,
    source,
    signal: new AbortController().signal,
    isHeldUp: () => false,
  };
}

function syncOf(chain: FakeChain, peers: readonly SyncPeer[], lines: string[] = []): BlockSync {
  let nowMs = 0;
  return new BlockSync({
    target: chain,
    peers: () => peers,
    report: () => {
      throw new Error("nobody did wrong");
    },
    // Faster than the real one, so that what is said every ten seconds is said soon.
    clock: { ...systemClock, monotonicMs: () => (nowMs += 100) },
    log: createLogger({
      component: "test",
      level: "info",
      destination: { write: (line) => lines.push(line) },
    }),
    limits: { settleMs: 0 },
  });
}

describe("block sync", () => {
  it("never asks a peer for what it has pruned, and takes the rest from it", async () => {
    const [pruned, archive]: [Height[], Height[]] = [[], []];
    const chain = new FakeChain(0);
    const sync = syncOf(chain, [peer("a", BASE, pruned), peer("b", 1, archive)]);
    await sync.run({ signal: new AbortController().signal, mayBeFirst: false });
    expect(chain.height()).toBe(HEIGHT);
    expect(Math.min(...archive)).toBe(1);
    expect(pruned.length).toBeGreaterThan(0);
    expect(Math.min(...pruned)).toBeGreaterThanOrEqual(BASE);
  });

  it("says that an archive node is missing where all have pruned the next block", async () => {
    const asked: Height[] = [];
    const lines: string[] = [];
    const chain = new FakeChain(3);
    const sync = syncOf(chain, [peer("a", BASE, asked), peer("b", BASE + 5, asked)], lines);
    const stopping = new AbortController();
    const run = sync.run({ signal: stopping.signal, mayBeFirst: true });
    const warning = () => lines.find((line) => line.includes("no peer has the next block"));
    await until(() => warning() !== undefined, { timeoutMs: 10_000 });
    expect(warning()).toContain("connect an archive node");
    expect(JSON.parse(warning() ?? "")).toMatchObject({ next: 4, oldestOfPeers: BASE, peers: 2 });
    stopping.abort(new Error("stop"));
    await expect(run).rejects.toThrow("stop");
    expect(chain.height()).toBe(3);
  });

  it("is not over among such peers where none can prove how far it is, until one has the block", async () => {
    const chain = new FakeChain(3, { provesNothing: true });
    const asked: Height[] = [];
    const peers = [peer("a", BASE, asked), peer("b", BASE + 5, asked)];
    const lines: string[] = [];
    const sync = syncOf(chain, peers, lines);
    const run = sync.run({ signal: new AbortController().signal, mayBeFirst: false });
    const warnings = () => lines.filter((line) => line.includes("no peer has the next block"));
    // By the faster clock a minute has passed: every claim has lost its weight.
    await until(() => warnings().length >= 7 || !sync.isCatchingUp(), { timeoutMs: 20_000 });
    expect(sync.isCatchingUp()).toBe(true);
    // A proof is a block: they are asked for it ever more seldom.
    expect(asked.length).toBeLessThan(20);
    peers.push(peer("c", 1, []));
    await run;
    expect(chain.height()).toBe(HEIGHT);
  });

  it("is over among such peers for a validator that decides alone: they may have made it up", async () => {
    const chain = new FakeChain(3, { provesNothing: true });
    await syncOf(chain, [peer("a", BASE, [])]).run({
      signal: new AbortController().signal,
      mayBeFirst: true,
    });
    expect(chain.height()).toBe(3);
  });
});
