/** Catching up from peers that are silent, slow, boastful or lying. */
import { describe, expect, it } from "@jest/globals";
import type { Height } from "../../../chain/hex.js";
import type { DecidedBlock } from "../../../node/consensus/consensus-ports.js";
import type { BlockSource } from "../../../node/p2p/blocks/block-protocol.js";
import { BlockQueue } from "../../../node/p2p/blocks/block-queue.js";
import type { SyncPeer } from "../../../node/p2p/blocks/block-peer.js";
import { BlockSync, type BlockSyncLimits } from "../../../node/p2p/blocks/block-sync.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { P2pError } from "../../../node/p2p/p2p-error.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { leftBehind } from "../../helpers/effort/signals.js";
import { until } from "../../helpers/until.js";
import { inVirtualTime } from "../../helpers/virtual-time.js";
import { FakeChain, hashOf, trueBlock } from "../../integration/p2p/fakes.js";

/** A peer in this process; `mode` is what it does when it is asked for blocks. */
class FakePeer implements SyncPeer {
  readonly nodeId: NodeId;
  readonly source: { -readonly [K in keyof BlockSource]: BlockSource[K] };
  readonly asked: Height[] = [];
  private readonly gone = new AbortController();
  private isRangeKnown = false;

  constructor(
    readonly name: string,
    options: {
      readonly height: Height;
      readonly mode?: "honest" | "frozen" | "silent" | "empty" | "lying" | "garbled";
    },
  ) {
    const { height, mode = "honest" } = options;
    this.nodeId = name as NodeId;
    this.source = {
      range: async (signal) => {
        // A frozen peer has said how far it is, and then nothing more.
        if (mode === "frozen" && this.isRangeKnown) await ended(signal);
        this.isRangeKnown = true;
        return { base: 1, height };
      },
      blocks: async (request, { signal, onBlock }) => {
        this.asked.push(request.from);
        if (mode === "empty") return 0;
        if (mode === "garbled") throw new P2pError("PEER_PROTOCOL", "garbled");
        if (mode === "silent" || mode === "frozen") await ended(signal);
        for (let index = 0; index < request.count; index++) {
          await new Promise((resolve) => setImmediate(resolve));
          signal.throwIfAborted();
          onBlock(blockOf(request.from + index, mode === "lying"), 500);
        }
        return request.count;
      },
    };
  }

  get signal(): AbortSignal {
    return this.gone.signal;
  }

  isHeldUp(): boolean {
    return false;
  }

  leave(): void {
    this.gone.abort(new Error("gone"));
  }
}

function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

function blockOf(height: Height, isFalse: boolean): DecidedBlock {
  const decided = trueBlock(height);
  if (!isFalse) return decided;
  const { block, commit } = decided;
  return { commit, block: { ...block, header: { ...block.header, appHash: hashOf("lie") } } };
}

function stage(
  peers: readonly FakePeer[],
  chain = new FakeChain(0),
  limits: Partial<BlockSyncLimits> = {},
) {
  const reports: string[] = [];
  const connected = new Set(peers);
  const sync = new BlockSync({
    target: chain,
    peers: () => [...connected],
    report: (nodeId, offence) => {
      reports.push(`${nodeId} ${offence}`);
      if (offence !== "falseBlock") return;
      for (const peer of connected) {
        if (peer.nodeId !== nodeId) continue;
        connected.delete(peer);
        peer.leave();
      }
    },
    clock: systemClock,
    log: createLogger({ component: "test", level: "silent" }),
    limits: {
      settleMs: 20,
      lonelyMs: 50,
      stallMs: 100,
      answerMs: 1_000,
      passedOverMs: 300,
      ...limits,
    },
  });
  const run = (mayBeFirst = false, signal = new AbortController().signal, provenHeight = 0) =>
    sync.run({ signal, mayBeFirst, provenHeight });
  return { sync, chain, reports, connected, run };
}

describe("catching up", () => {
  it("leaves no request behind at a peer that stays connected", () =>
    inVirtualTime(async () => {
      const peer = new FakePeer("honest", { height: 400 });
      const { run } = stage([peer]);
      await run();
      expect(peer.asked.length).toBeGreaterThan(8);
      // The last question for its range may follow it until its time is over.
      expect(leftBehind(peer.signal)).toBeLessThanOrEqual(1);
    }));

  it("ends beside liars who claim one block more and give nothing, in turns and under new keys", () =>
    inVirtualTime(async () => {
      const honest = new FakePeer("honest", { height: 20 });
      const liar = (name: string) => new FakePeer(name, { height: 21, mode: "silent" });
      const { sync, chain, connected, run } = stage(
        [honest, ...["a", "b", "c", "d"].map(liar)],
        new FakeChain(0),
        { claimMs: 200, strangersMs: 600, passedOverMs: 300, stallMs: 100 },
      );
      // A new key every 80 ms; the chain goes on meanwhile, as it does.
      let keys = 0;
      const comings = setInterval(() => {
        const fresh = new FakePeer(`new ${keys++}`, { height: 21, mode: "silent" });
        connected.add(fresh);
      }, 80);
      try {
        await run();
      } finally {
        clearInterval(comings);
      }
      expect(chain.height()).toBe(20);
      expect(sync.isCatchingUp()).toBe(false);
    }));

  it("ends beside a liar who puts it off for ever, whenever each of the others has come", () =>
    inVirtualTime(async () => {
      const liar = new FakePeer("liar", { height: 21 });
      liar.source.blocks = async (_request, { signal, onLater }) => {
        const saying = setInterval(() => onLater?.(), 50);
        return ended(signal).finally(() => clearInterval(saying));
      };
      const { chain, connected, run } = stage([liar], new FakeChain(0), {
        claimMs: 200,
        laterMs: 3_000,
        strangersMs: 3_000,
      });
      const stopping = new AbortController();
      setTimeout(() => stopping.abort(new Error("still catching up")), 60_000);
      let names = 0;
      const comings = setInterval(() => {
        connected.add(new FakePeer(`honest ${names++}`, { height: 20 }));
        if (names === 8) clearInterval(comings);
      }, 250);
      await run(false, stopping.signal);
      expect(chain.height()).toBe(20);
    }));

  it.each([0, 150])("ends beside a liar who gives each block, %i ms late", (lateMs) =>
    inVirtualTime(async () => {
      const network = { height: 20 };
      const growing = setInterval(() => network.height++, 100);
      const honest = new FakePeer("honest", network);
      honest.source.range = async () => ({ base: 1, ...network });
      const liar = new FakePeer("liar", network);
      liar.source.range = async () => ({ base: 1, height: network.height + 100 });
      liar.source.blocks = async ({ from, count }, { signal, onBlock }) => {
        for (let next = from; next < from + count; next++) {
          while (next > network.height) await new Promise((resolve) => setTimeout(resolve, 5));
          await new Promise((resolve) => setTimeout(resolve, lateMs));
          signal.throwIfAborted();
          onBlock(trueBlock(next), 500);
        }
        return count;
      };
      const { chain, reports, run } = stage([liar, honest], new FakeChain(0), {
        claimMs: 600,
        strangersMs: 600,
        nearMs: 3_000,
        stallMs: 5_000,
        overdueMs: 200,
      });
      const stopping = new AbortController();
      setTimeout(() => stopping.abort(new Error("still catching up")), 20_000);
      await run(false, stopping.signal).finally(() => clearInterval(growing));
      // What consensus makes up by itself may be missing.
      expect([chain.height() > network.height - 16, reports]).toEqual([true, []]);
    }),
  );

  it("does not end while a peer is ahead that is slow to give, but proves it", () =>
    inVirtualTime(async () => {
      // Blocks take a second to come; the newest one is shown at once.
      const slow = new FakePeer("slow", { height: 700 });
      const give = slow.source.blocks;
      slow.source.blocks = async (request, options) => {
        if (request.from !== 700) await new Promise((resolve) => setTimeout(resolve, 1_000));
        return give(request, options);
      };
      const { chain, run } = stage([slow, new FakePeer("same", { height: 0 })], new FakeChain(0), {
        claimMs: 200,
        strangersMs: 300,
        stallMs: 5_000,
        answerMs: 5_000,
      });
      await run();
      expect(chain.height()).toBe(700);
    }));

  it("waits for a proof as long as the blocks in front of it come", () =>
    inVirtualTime(async () => {
      const peer = new FakePeer("slow", { height: 700 });
      const give = peer.source.blocks;
      const proofs: AbortSignal[] = [];
      peer.source.blocks = async (request, options) => {
        const isProof = request.from === 700;
        if (isProof) proofs.push(options.signal);
        for (let turn = 0; turn < 40; turn++) {
          await new Promise((resolve) => setTimeout(resolve, 100));
          options.signal.throwIfAborted();
          if (!isProof) options.onBytes?.(20_000);
        }
        return give(request, options);
      };
      const limits = { claimMs: 200, stallMs: 5_000, answerMs: 1_000 };
      const { chain, run } = stage([peer], new FakeChain(0), limits);
      await run();
      expect([chain.height(), proofs[0]?.aborted]).toEqual([700, false]);
    }));

  it("gets past a silent peer and asks others for what it kept back", () =>
    inVirtualTime(async () => {
      const silent = new FakePeer("silent", { height: 300, mode: "silent" });
      const { chain, reports, run } = stage([silent, new FakePeer("honest", { height: 300 })]);
      await run();
      expect(chain.height()).toBe(300);
      expect(reports).toContain("silent unanswered");
      expect(reports.filter((report) => report.startsWith("honest"))).toEqual([]);
    }));

  it("bans who sends a false block, and takes nothing else from it", () =>
    inVirtualTime(async () => {
      const liar = new FakePeer("liar", { height: 200, mode: "lying" });
      const { chain, reports, connected, run } = stage([liar]);
      const honest = new FakePeer("honest", { height: 200 });
      const done = run();
      await until(() => reports.includes("liar falseBlock"), { timeoutMs: 5_000 });
      connected.add(honest);
      await done;
      expect(chain.blocks).toEqual(Array.from({ length: 200 }, (_, i) => trueBlock(i + 1)));
      expect(chain.appliedCount).toBeLessThanOrEqual(202);
    }));

  it("is not held up by a peer that boasts of blocks it does not give", () =>
    inVirtualTime(async () => {
      const boaster = new FakePeer("boaster", { height: 1_000_000, mode: "empty" });
      const { chain, reports, run } = stage([boaster, new FakePeer("honest", { height: 100 })]);
      await run();
      expect(chain.height()).toBe(100);
      expect(reports).toContain("boaster unanswered");
    }));

  it("holds garbled answers against the sender", () =>
    inVirtualTime(async () => {
      const garbled = new FakePeer("garbled", { height: 50, mode: "garbled" });
      const { chain, reports, run } = stage([garbled, new FakePeer("honest", { height: 50 })]);
      await run();
      expect(chain.height()).toBe(50);
      expect(reports).toContain("garbled malformed");
    }));

  it("does not wait for a peer that froze, as long as another one speaks", () =>
    inVirtualTime(async () => {
      const frozen = new FakePeer("frozen", { height: 100, mode: "frozen" });
      const peers = [frozen, new FakePeer("honest", { height: 100 })];
      // The chain is complete: only the ranges are waited for, and for 5 s where one does not come.
      const { chain, run } = stage(peers, new FakeChain(100), { settleMs: 1_300, silentMs: 200 });
      const startMs = performance.now();
      await run();
      expect(chain.height()).toBe(100);
      expect(performance.now() - startMs).toBeLessThan(2_000);
    }));

  it("ends beside many who say each time just before they count as silent how far they are", () =>
    inVirtualTime(async () => {
      // One round of such a peer: its answer, and the pause before it is asked again.
      const roundMs = 1_085;
      const strangers = Array.from({ length: 20 }, (_, index) => {
        const stranger = new FakePeer(`stranger ${index}`, { height: 100 });
        let mostMs = 930 + roundMs;
        stranger.source.range = async () => {
          // Their answers come one after the other, so that at any time some peer's is old.
          const missingMs = (index * roundMs) / 20 - performance.now() - 930;
          const delayMs = 930 + (((missingMs % roundMs) + roundMs) % roundMs);
          await new Promise((resolve) => setTimeout(resolve, Math.min(delayMs, mostMs)));
          mostMs = 992;
          return { base: 1, height: 100 };
        };
        return stranger;
      });
      const honest = new FakePeer("honest", { height: 100 });
      const { run } = stage([honest, ...strangers], new FakeChain(100), { settleMs: 10_000 });
      const startMs = performance.now();
      const stopping = new AbortController();
      setTimeout(() => stopping.abort(new Error("still catching up")), 30_000);
      await run(false, stopping.signal);
      expect(performance.now() - startMs).toBeLessThan(20_000);
    }));

  it("ends beside many who have said once how far they are and are held up since", () =>
    inVirtualTime(async () => {
      const strangers = Array.from({ length: 8 }, (_, index) => {
        const stranger = new FakePeer(`stranger ${index}`, { height: 100 });
        stranger.isHeldUp = () => true;
        let isKnown = false;
        stranger.source.range = async (signal) => {
          if (isKnown) return ended(signal);
          isKnown = true;
          // Of so many, each asked for 5 s, some one has just been asked once more at any time.
          await new Promise((resolve) => setTimeout(resolve, index * 620));
          return { base: 1, height: 100 };
        };
        return stranger;
      });
      const honest = new FakePeer("honest", { height: 100 });
      const { run } = stage([honest, ...strangers], new FakeChain(100), { settleMs: 10_000 });
      const stopping = new AbortController();
      setTimeout(() => stopping.abort(new Error("still catching up")), 30_000);
      await run(false, stopping.signal);
    }));

  it("does not end while a peer that speaks has more", () =>
    inVirtualTime(async () => {
      const frozen = new FakePeer("frozen", { height: 10, mode: "frozen" });
      const { chain, run } = stage(
        [frozen, new FakePeer("ahead", { height: 40 })],
        new FakeChain(10),
      );
      await run();
      expect(chain.height()).toBe(40);
    }));

  it("waits for a first peer when it may not be the first, and not when it may", () =>
    inVirtualTime(async () => {
      const alone = stage([]);
      await alone.run(true);
      expect(alone.sync.isCatchingUp()).toBe(false);
      const follower = stage([]);
      const stopping = new AbortController();
      const run = follower.run(false, stopping.signal);
      const late = new FakePeer("late", { height: 5 });
      await new Promise((resolve) => setTimeout(resolve, 120));
      expect(follower.sync.isCatchingUp()).toBe(true);
      follower.connected.add(late);
      await run;
      expect(follower.chain.height()).toBe(5);
    }));

  it("waits longer for somebody who has them while blocks are known to be missing", () =>
    inVirtualTime(async () => {
      const { signal } = new AbortController();
      const limits = { lackingMs: 1_000 };
      const alone = stage([], new FakeChain(2), limits);
      const startMs = performance.now();
      await alone.run(true, signal, 5);
      expect(performance.now() - startMs).toBeGreaterThanOrEqual(1_000);
      // Neither nobody nor a peer that lacks them as well ends it before the one comes that has them.
      for (const others of [[], [new FakePeer("as far", { height: 2 })]]) {
        const { chain, connected, run } = stage(others, new FakeChain(2), limits);
        const done = run(true, signal, 5);
        await new Promise((resolve) => setTimeout(resolve, 500));
        connected.add(new FakePeer("whole", { height: 6 }));
        await done;
        expect(chain.height()).toBe(6);
      }
      const whole = stage([], new FakeChain(5), limits);
      const againMs = performance.now();
      await whole.run(true, signal, 5);
      expect(performance.now() - againMs).toBeLessThan(500);
    }));

  it("stops with the node's own fault", () =>
    inVirtualTime(async () => {
      const chain = new FakeChain(0);
      chain.apply = () => Promise.reject(new Error("disk full"));
      const { run, reports, sync } = stage([new FakePeer("honest", { height: 5 })], chain);
      await expect(run()).rejects.toThrow("disk full");
      expect(reports).toEqual([]);
      expect(sync.isCatchingUp()).toBe(true);
    }));

  it("can run again after it has ended", () =>
    inVirtualTime(async () => {
      const { chain, connected, run, sync } = stage([new FakePeer("first", { height: 10 })]);
      await run();
      connected.clear();
      connected.add(new FakePeer("second", { height: 30 }));
      await run();
      expect([chain.height(), sync.isCatchingUp()]).toEqual([30, false]);
    }));
});

describe("the queue of blocks", () => {
  const from = "peer" as NodeId;
  const range = { base: 1, height: 100_000 };

  it("asks for each height once, in order, and no further than a window", () => {
    const queue = new BlockQueue(1);
    const heights: Height[] = [];
    for (
      let request = queue.take(range, from);
      request !== undefined;
      request = queue.take(range, from)
    ) {
      for (let index = 0; index < request.count; index++) heights.push(request.from + index);
    }
    expect(heights).toEqual(Array.from({ length: 512 }, (_, index) => index + 1));
  });

  it("asks again for what did not come, and for what a liar sent", () => {
    const queue = new BlockQueue(1);
    const request = queue.take({ base: 1, height: 4 }, from);
    expect(request).toEqual({ from: 1, count: 4 });
    queue.put(trueBlock(1), { from, sizeBytes: 1, cameMs: 0 });
    queue.put(trueBlock(2), { from: "other" as NodeId, sizeBytes: 1, cameMs: 0 });
    queue.release({ from: 1, count: 4 }, from);
    expect(queue.take({ base: 1, height: 4 }, from)).toEqual({ from: 3, count: 2 });
    queue.dropFrom(from);
    expect(queue.next()).toBeUndefined();
    expect(queue.take({ base: 1, height: 4 }, from)).toEqual({ from: 1, count: 1 });
  });

  it("asks only for what holds it up while much waits", () => {
    const queue = new BlockQueue(1);
    queue.take(range, from);
    queue.put(trueBlock(3), { from, sizeBytes: 65 * 1024 * 1024, cameMs: 0 });
    queue.release({ from: 1, count: 512 }, from);
    expect(queue.take(range, from)).toEqual({ from: 1, count: 1 });
    expect(queue.take(range, from)).toBeUndefined();
  });

  it("keeps nothing that nobody asked for", () => {
    const queue = new BlockQueue(10);
    queue.put(trueBlock(9), { from, sizeBytes: 1, cameMs: 0 });
    queue.put(trueBlock(600), { from, sizeBytes: 1, cameMs: 0 });
    queue.put(trueBlock(10), { from, sizeBytes: 1, cameMs: 0 });
    expect(queue.next()?.received.commit.height).toBe(10);
    queue.advance();
    expect(queue.next()).toBeUndefined();
    expect(queue.take({ base: 1, height: 600 }, from)?.from).toBe(11);
  });

  it("asks one more for the block that holds up the others, and each peer once", () => {
    const queue = new BlockQueue(1);
    const [other, third] = ["other", "third"] as NodeId[];
    if (other === undefined || third === undefined) throw new Error("names");
    expect(queue.takeOverdue(range, other)).toBeUndefined();
    const first = { from: 1, count: 32 };
    expect(queue.take(range, from)).toEqual(first);
    expect(queue.takeOverdue(range, from)).toBeUndefined();
    expect(queue.takeOverdue({ base: 2, height: 100 }, other)).toBeUndefined();
    queue.put(trueBlock(9), { from, sizeBytes: 1, cameMs: 0 });
    const second = { from: 1, count: 8 };
    expect(queue.takeOverdue(range, other)).toEqual(second);
    expect(queue.takeOverdue(range, other)).toBeUndefined();
    // Whoever ends first does not make the others' requests forgotten.
    queue.release(first, from);
    expect(queue.take({ base: 1, height: 8 }, third)).toBeUndefined();
    queue.release(second, other);
    expect(queue.take({ base: 1, height: 8 }, third)).toEqual(second);
  });

  it("wants nothing more of a request whose blocks are here or behind", () => {
    const queue = new BlockQueue(1);
    const request = { from: 1, count: 2 };
    expect(queue.isWanted(request)).toBe(true);
    queue.put(trueBlock(1), { from, sizeBytes: 1, cameMs: 0 });
    queue.advance();
    expect(queue.isWanted(request)).toBe(true);
    queue.put(trueBlock(2), { from, sizeBytes: 1, cameMs: 0 });
    expect(queue.isWanted(request)).toBe(false);
  });
});
