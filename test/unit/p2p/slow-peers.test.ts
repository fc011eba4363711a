/** Catching up from peers that are slow or silent, on a clock that the test moves. */
import { describe, expect, it } from "@jest/globals";
import type { Height } from "../../../chain/hex.js";
import type { SyncPeer } from "../../../node/p2p/blocks/block-peer.js";
import type { BlockSource } from "../../../node/p2p/blocks/block-protocol.js";
import { BlockSync, type BlockSyncLimits } from "../../../node/p2p/blocks/block-sync.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { until } from "../../helpers/until.js";
import { FakeChain, trueBlock } from "../../integration/p2p/fakes.js";
import { TestClock } from "./clock.js";

const LIMITS = {
  settleMs: 0,
  stallMs: 5_000,
  answerMs: 20_000,
  overdueMs: 2_000,
  passedOverMs: 15_000,
  claimMs: 600_000,
  laterMs: 600_000,
  strangersMs: 600_000,
  nearMs: 600_000,
};

const WAIT = { timeoutMs: 20_000 };

/** One request that the peer has, and what it can make of it. */
interface Held {
  readonly from: Height;
  readonly signal: AbortSignal;
  readonly later: () => void;
  readonly bytes: (sizeBytes?: number) => void;
  /** The first block of the answer, of so many bytes; it is over then, as behind any large one. */
  readonly giveOne: (sizeBytes: number) => void;
  readonly give: () => void;
}

/** A peer that gives nothing by itself: the test says what becomes of its requests. */
class HeldPeer implements SyncPeer {
  readonly nodeId: NodeId;
  readonly signal = new AbortController().signal;
  readonly source: BlockSource;
  readonly held: Held[] = [];
  /** How often it was asked how far it is; the node looks at its answers each time. */
  looks = 0;
  isStopped = false;

  constructor(name: string, options: { readonly height: Height; readonly isGenerous?: boolean }) {
    this.nodeId = name as NodeId;
    this.source = {
      range: async () => {
        this.looks++;
        return { base: 1, height: options.height };
      },
      blocks: ({ from, count }, { signal, onBlock, onLater, onBytes }) =>
        new Promise((resolve, reject) => {
          const give = () => {
            for (let height = from; height < from + count; height++) onBlock(trueBlock(height), 1);
            resolve(count);
          };
          const giveOne = (sizeBytes: number) => {
            onBlock(trueBlock(from), sizeBytes);
            resolve(1);
          };
          const later = () => onLater?.();
          const bytes = (sizeBytes = 1) => onBytes?.(sizeBytes);
          this.held.push({ from, signal, give, giveOne, later, bytes });
          signal.addEventListener("abort", () => reject(signal.reason));
          if (options.isGenerous === true) give();
        }),
    };
  }

  isHeldUp(): boolean {
    return this.isStopped;
  }

  /** Requests that the node still waits for. */
  get open(): Held[] {
    return this.held.filter(({ signal }) => !signal.aborted);
  }
}

function stage(
  peers: readonly HeldPeer[],
  limits: Partial<BlockSyncLimits> = LIMITS,
  chain = new FakeChain(0),
) {
  const clock = new TestClock();
  const reports: string[] = [];
  const stopping = new AbortController();
  const sync = new BlockSync({
    target: chain,
    peers: () => peers,
    report: (nodeId, offence) => reports.push(`${nodeId} ${offence}`),
    clock,
    log: createLogger({ component: "test", level: "silent" }),
    limits,
  });
  let isOver = false;
  const run = sync.run({ signal: stopping.signal, mayBeFirst: false }).finally(() => {
    isOver = true;
  });
  /** Lets time pass, and waits until the node has looked at its peers again. */
  const look = async (peer: HeldPeer, durationMs: number) => {
    const before = peer.looks;
    clock.timeMs += durationMs;
    await until(() => peer.looks > before || isOver, WAIT);
  };
  const stop = async () => {
    stopping.abort(new Error("stop"));
    await expect(run).rejects.toThrow("stop");
  };
  return { clock, chain, reports, run, isOver: () => isOver, look, stop };
}

describe("a peer that says nothing", () => {
  it("on four requests fails once, not four times", async () => {
    const silent = new HeldPeer("silent", { height: 300 });
    const { clock, reports, stop } = stage([silent]);
    await until(() => silent.held.length === 4, WAIT);
    clock.timeMs += LIMITS.stallMs;
    await until(() => silent.open.length === 0, WAIT);
    // It is asked again, and fails once more.
    clock.timeMs += LIMITS.passedOverMs;
    await until(() => silent.held.length === 8, WAIT);
    expect(reports).toEqual(["silent unanswered"]);
    clock.timeMs += LIMITS.stallMs;
    await until(() => silent.open.length === 0, WAIT);
    clock.timeMs += LIMITS.passedOverMs;
    await until(() => silent.held.length === 12, WAIT);
    expect(reports).toEqual(["silent unanswered", "silent unanswered"]);
    await stop();
  });

  it("is not silent while this node reads nothing from it", async () => {
    const stopped = new HeldPeer("stopped", { height: 100 });
    const { look, reports, stop } = stage([stopped]);
    await until(() => stopped.held.length === 4, WAIT);
    stopped.isStopped = true;
    for (let count = 0; count < 3; count++) await look(stopped, LIMITS.stallMs - 1_000);
    expect([stopped.open.length, reports]).toEqual([4, []]);
    stopped.isStopped = false;
    await look(stopped, LIMITS.stallMs - 1_000);
    expect(stopped.open.length).toBe(4);
    await look(stopped, 2_000);
    expect([stopped.open.length, reports]).toEqual([0, ["stopped unanswered"]]);
    await stop();
  });

  it("on three requests while it gives on the fourth, if only bytes, is not silent", async () => {
    const slow = new HeldPeer("slow", { height: 100 });
    const { look, reports, stop } = stage([slow]);
    await until(() => slow.held.length === 4, WAIT);
    for (let count = 0; count < 4; count++) {
      slow.held[0]?.bytes();
      await look(slow, LIMITS.stallMs - 1_000);
    }
    expect([slow.open.length, reports]).toEqual([4, []]);
    await stop();
  });
});

it("time before the first peer makes no claim older", async () => {
  const peers: HeldPeer[] = [];
  const limits = { ...LIMITS, claimMs: 6_000, strangersMs: 15_000 };
  const { chain, clock, run } = stage(peers, limits);
  clock.timeMs += 16_000;
  peers.push(new HeldPeer("late", { height: 100, isGenerous: true }));
  await run;
  expect(chain.height()).toBe(100);
});

describe("a peer that says later", () => {
  it("is asked for less at once, never held to have failed, and waited for", async () => {
    const busy = new HeldPeer("busy", { height: 100 });
    const { chain, look, reports, run } = stage([busy]);
    await until(() => busy.held.length === 4, WAIT);
    for (let count = 0; count < 5; count++) {
      for (const { later } of busy.open) later();
      await look(busy, LIMITS.answerMs / 5);
    }
    // What it did not give in time is asked for again at once, in one request.
    await until(() => busy.held.length === 5, WAIT);
    for (const { later } of busy.open) later();
    await look(busy, 4_000);
    expect([busy.open.map(({ from }) => from), busy.held.length]).toEqual([[1], 5]);
    busy.open[0]?.give();
    const giving = setInterval(() => busy.open.forEach(({ give }) => give()), 1);
    await run.finally(() => clearInterval(giving));
    expect([chain.height(), reports]).toEqual([100, []]);
  });

  it("and keeps the block that comes next does not hold up the others", async () => {
    const liar = new HeldPeer("liar", { height: 100 });
    const honest = new HeldPeer("honest", { height: 100, isGenerous: true });
    const { chain, clock, reports, run } = stage([liar, honest]);
    await until(() => liar.held.length > 0 && honest.held.length > 0, WAIT);
    expect([liar.held[0]?.from, chain.height()]).toEqual([1, 0]);
    liar.held[0]?.later();
    clock.timeMs += LIMITS.overdueMs;
    // The liar's second request, if it has one, is overdue as well in its turn.
    const passing = setInterval(() => (clock.timeMs += LIMITS.overdueMs), 100);
    const saying = setInterval(() => liar.open.forEach(({ later }) => later()), 10);
    await run.finally(() => [passing, saying].forEach((timer) => clearInterval(timer)));
    expect([chain.height(), reports]).toEqual([100, []]);
    // What others gave meanwhile is not waited for.
    expect(liar.open).toEqual([]);
  });
});

/** The least rate of an answer, bytes a second, as operations.md promises it. */
const LEAST_RATE = 128_000;

/** While blocks are missing peers are asked so often how far they are. */
const LOOK_MS = 2_000;

describe("a line on which a block takes long", () => {
  it("is waited for as long as an answer comes at the least rate, and not for a byte now and then", async () => {
    const slow = new HeldPeer("slow", { height: 1 });
    const { look, reports, stop } = stage([slow]);
    await until(() => slow.open.length === 1, WAIT);
    for (let turn = 0; turn < 30; turn++) {
      slow.open[0]?.bytes((LEAST_RATE * LOOK_MS) / 1_000);
      await look(slow, LOOK_MS);
    }
    expect([slow.held.length, slow.open.length, reports]).toEqual([1, 1, []]);
    for (let turn = 0; turn < 9; turn++) {
      slow.open[0]?.bytes();
      await look(slow, LOOK_MS);
    }
    expect([slow.held.length, slow.open.length]).toEqual([1, 1]);
    await look(slow, LOOK_MS + 1);
    await until(() => slow.held.length === 2, WAIT);
    expect([slow.held[0]?.signal.aborted, reports]).toEqual([true, []]);
    await stop();
  });

  it("is waited for though several answers share it", async () => {
    const slow = new HeldPeer("slow", { height: 600 });
    const { look, reports, stop } = stage([slow]);
    await until(() => slow.open.length === 4, WAIT);
    for (let turn = 0; turn < 30; turn++) {
      for (const one of slow.open) one.bytes((LEAST_RATE * LOOK_MS) / 1_000 / 4);
      await look(slow, LOOK_MS);
    }
    expect([slow.held.length, slow.open.length, reports]).toEqual([4, 4, []]);
    await stop();
  });

  it("is waited for on an answer that gave much and then has to wait for its turn", async () => {
    const slow = new HeldPeer("slow", { height: 1 });
    const { look, stop } = stage([slow]);
    await until(() => slow.open.length === 1, WAIT);
    for (let turn = 0; turn < 15; turn++) {
      slow.open[0]?.bytes((LEAST_RATE * LOOK_MS) / 1_000);
      await look(slow, LOOK_MS);
    }
    slow.open[0]?.later();
    await look(slow, LOOK_MS);
    expect([slow.held.length, slow.open.length]).toEqual([1, 1]);
    await stop();
  });

  it("is not waited for on an answer of which nothing comes beside others that do, without an end", async () => {
    const mute = new HeldPeer("mute", { height: 600 });
    const { look, stop } = stage([mute]);
    await until(() => mute.open.length === 4, WAIT);
    const isAborted: boolean[] = [];
    for (let turn = 0; turn < 110; turn++) {
      for (const one of mute.held.slice(0, 3)) one.bytes((LEAST_RATE * LOOK_MS) / 1_000 / 3);
      await look(mute, LOOK_MS);
      isAborted.push(mute.held[3]?.signal.aborted === true);
    }
    // As long as the largest message takes, since it may have been that for which the line was needed.
    const waitedMs = isAborted.indexOf(true) * LOOK_MS;
    expect([waitedMs > 150_000, waitedMs < 220_000]).toEqual([true, true]);
    expect(mute.held.slice(0, 3).some(({ signal }) => signal.aborted)).toBe(false);
    await stop();
  });

  it("is not waited for by word alone that the block comes later", async () => {
    const liar = new HeldPeer("liar", { height: 1 });
    const { look, stop } = stage([liar]);
    await until(() => liar.open.length === 1, WAIT);
    for (let turn = 0; turn < 12; turn++) {
      liar.open[0]?.later();
      await look(liar, LOOK_MS);
    }
    await until(() => liar.held.length > 1, WAIT);
    expect(liar.held[0]?.signal.aborted).toBe(true);
    await stop();
  });
});

describe("a node whose next block comes at the least rate", () => {
  /** The usual limits of claims. */
  const USUAL = { settleMs: 0 };
  const LARGE_BYTES = 16_000_000;
  /** A line that brings a large block in 16 s: longer than a claim without anything counts. */
  const BYTES_A_LOOK = 2_000_000;
  const unproven = () => new FakeChain(0, { provesNothing: true });

  /** What comes of answers for a while: of the first the line is full, and the others wait for it. */
  async function bring(
    [coming, ...others]: readonly Held[],
    look: () => Promise<void>,
    count: number,
  ) {
    for (let looks = 0; looks < count; looks++) {
      coming?.bytes(BYTES_A_LOOK);
      for (const { later } of others) later();
      await look();
    }
  }

  it("does not end before it is here, and throws nothing of it away", async () => {
    const peer = new HeldPeer("slow", { height: 600 });
    const { look, isOver, stop } = stage([peer], USUAL, unproven());
    await until(() => peer.open.length === 4, WAIT);
    await bring(peer.held, () => look(peer, LOOK_MS), 20);
    expect([isOver(), peer.held[0]?.signal.aborted]).toEqual([false, false]);
    await stop();
  });

  it("gets all of many, one after the other, without any proof", async () => {
    const peer = new HeldPeer("slow", { height: 32 });
    const { chain, look, isOver, stop } = stage([peer], USUAL, unproven());
    // Longer than claims and bytes of which nothing comes hold a node together.
    for (let height = 1; height <= 18 && !isOver(); height++) {
      const asked = () => peer.held.find(({ from }) => from === height);
      await until(() => asked() !== undefined, WAIT);
      await bring([asked() as Held], () => look(peer, LOOK_MS), 8);
      asked()?.giveOne(LARGE_BYTES);
      await until(() => chain.height() === height || isOver(), WAIT);
    }
    expect(chain.height()).toBe(18);
    await stop();
  });

  it("ends when it comes slower, as if nothing came", async () => {
    const peer = new HeldPeer("slow", { height: 600 });
    const { look, isOver, run } = stage([peer], USUAL, unproven());
    await until(() => peer.open.length === 4, WAIT);
    let lookCount = 0;
    for (; !isOver() && lookCount < 20; lookCount++) {
      peer.held[0]?.bytes((LEAST_RATE * LOOK_MS) / 1_000 - 100_000);
      await look(peer, LOOK_MS);
    }
    await run;
    expect(lookCount).toBeLessThan(12);
  });

  it("ends after a largest block's time where nothing comes of it, whoever sends the bytes", async () => {
    const peers = [1, 2, 3].map((key) => new HeldPeer(`liar ${key}`, { height: 1 }));
    const { look, isOver, run } = stage(peers, { ...USUAL, overdueMs: 0 }, unproven());
    await until(() => peers.some(({ open }) => open.length > 0), WAIT);
    let passedMs = 0;
    for (; !isOver() && passedMs < 600_000; passedMs += LOOK_MS) {
      for (const { open } of peers) open[0]?.bytes((LEAST_RATE * LOOK_MS) / 1_000);
      await look(peers[0] as HeldPeer, LOOK_MS);
    }
    await run;
    expect([passedMs > 150_000, passedMs < 240_000]).toEqual([true, true]);
  });
});
