/** Who has to wait, and who pays for it, on a clock that the test moves. */
import { describe, expect, it } from "@jest/globals";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { PeerLoad } from "../../../node/p2p/peers/peer-load.js";
import { TestClock } from "./clock.js";

const idOf = (digit: string) => digit.repeat(40) as NodeId;
const [peer, other, kept] = [idOf("a"), idOf("b"), idOf("c")];

function stage() {
  const clock = new TestClock();
  const holdUps: { readonly nodeId: NodeId; readonly durationMs: number }[] = [];
  const overloads: NodeId[] = [];
  const load = new PeerLoad({
    clock,
    reservedIds: new Set([kept]),
    onHoldUp: (nodeId, durationMs) => holdUps.push({ nodeId, durationMs }),
    onOverload: (nodeId) => overloads.push(nodeId),
  });
  /** A peer that costs a second of each second, and is held up as often as it is to be. */
  const hammer = (nodeId: NodeId, seconds: number) => {
    let heardMs = 0;
    for (const endMs = clock.timeMs + seconds * 1_000; clock.timeMs < endMs; ) {
      holdUps.length = 0;
      load.heard(nodeId, 10);
      clock.timeMs += 10;
      heardMs += 10;
      const [held] = holdUps;
      if (held === undefined) continue;
      clock.timeMs += held.durationMs;
      load.heldUp(nodeId, held.durationMs);
    }
    return heardMs;
  };
  return { clock, load, holdUps, overloads, hammer };
}

describe("the time that peers cost", () => {
  it("is of no interest while it is what a relay costs", () => {
    const { clock, load, holdUps } = stage();
    // A greeting that takes a second at once, then a tenth of the thread for a minute.
    load.heard(peer, 1_000);
    for (let count = 0; count < 600; count++) {
      load.heard(peer, 10);
      clock.timeMs += 100;
    }
    expect(holdUps).toEqual([]);
  });

  it("is bounded for each peer, who is held up, then reported", () => {
    const { overloads, hammer } = stage();
    const heardMs = hammer(peer, 30);
    // The burst, and fifteen hundredths of each second.
    expect(heardMs).toBeGreaterThan(4_000);
    expect(heardMs).toBeLessThan(1_500 + 30 * 150 + 1_000);
    expect(overloads.length).toBeGreaterThanOrEqual(1);
    hammer(peer, 60);
    expect(overloads.length).toBeGreaterThanOrEqual(3);
  });

  it("of a peer that the operator chose is bounded, and never reported", () => {
    const { overloads, hammer } = stage();
    // Three times as much as others: whom a validator hears through it.
    expect(hammer(kept, 120)).toBeLessThan(3 * (1_500 + 120 * 150) + 1_000);
    expect(overloads).toEqual([]);
  });

  it("of many strangers together is bounded, and a modest one is not held up by them", () => {
    const { clock, load } = stage();
    const crowd = Array.from({ length: 20 }, (_, index) => index.toString(16).padStart(40, "0"));
    let heardMs = 0;
    for (let count = 0; count < 1_000; count++) {
      for (const nodeId of crowd as NodeId[]) {
        if (load.debtMs(nodeId) > 0) continue;
        load.heard(nodeId, 5);
        heardMs += 5;
      }
      clock.timeMs += 10;
    }
    // Ten seconds: the common burst, then a third of the thread.
    expect(heardMs).toBeLessThan(2_000 + 10 * 350 * 1.5);
    expect(load.debtMs(other)).toBe(0);
    expect(load.debtMs(kept)).toBe(0);
  });

  it("is given back for what was worth it or asked for, not without bound", () => {
    const { load, holdUps } = stage();
    for (let count = 0; count < 1_000; count++) {
      load.heard(peer, 100);
      load.forgive(peer, 100);
    }
    expect(holdUps).toEqual([]);
    for (let count = 0; count < 1_000; count++) load.forgive(peer, 100);
    load.heard(peer, 3_100);
    expect(holdUps).toHaveLength(1);
  });
});

describe("what peers are given", () => {
  const { signal } = new AbortController();

  it("is bounded for each, and whoever has had least goes first", async () => {
    const { clock, load, overloads } = stage();
    await load.turn(peer, signal);
    load.served(peer, 400);
    await nextTurn();
    expect([load.mayServe(peer), load.mayServe(other)]).toEqual([false, true]);
    load.served(other, 250);
    await nextTurn();
    // Nothing is left for anybody.
    expect(load.mayServe(idOf("d"))).toBe(false);
    const order: string[] = [];
    const wait = async (nodeId: NodeId) => {
      await load.turn(nodeId, signal);
      order.push(nodeId);
      load.served(nodeId, 150);
    };
    const waits = [wait(peer), wait(other)];
    clock.timeMs += 700;
    await waits[1];
    clock.timeMs += 2_000;
    await waits[0];
    expect(order).toEqual([other, peer]);
    expect(overloads).toEqual([]);
  });

  it("is what a peer that the operator chose lacks also while strangers take all that there is", async () => {
    const { clock, load } = stage();
    const strangers = ["d", "e", "f", "0"].map(idOf);
    for (const nodeId of strangers) load.served(nodeId, 200);
    await nextTurn();
    expect([load.mayServe(kept), load.mayServe(other)]).toEqual([true, false]);
    // Blocks that it asks for are in the same queue as everybody's.
    let isGranted = false;
    const turn = load.turn(kept, signal).then(() => (isGranted = true));
    await nextTurn();
    expect(isGranted).toBe(false);
    // Its own time is bounded as well, and what it has is taken from all that there is.
    load.served(kept, 300);
    await nextTurn();
    expect(load.mayServe(kept)).toBe(false);
    clock.timeMs += 700;
    expect([load.mayServe(kept), load.mayServe(other)]).toEqual([true, false]);
    clock.timeMs += 2_000;
    await turn;
  });

  it("leaves the thread to others between two answers", async () => {
    const { load } = stage();
    // They have cost twenty milliseconds lately.
    for (let count = 0; count < 20; count++) load.served(kept, 20);
    await nextTurn();
    const order: string[] = [];
    const answer = async (nodeId: NodeId) => {
      await load.turn(nodeId, signal);
      order.push("answer");
      load.served(nodeId, 20);
    };
    const answers = [answer(peer), answer(other), answer(peer)];
    const ticks = setInterval(() => order.push("other"), 0);
    await Promise.all(answers);
    clearInterval(ticks);
    const together = order.filter((one, index) => one === "answer" && order[index + 1] === one);
    expect(together).toEqual([]);
    expect(order.filter((one) => one === "answer")).toHaveLength(3);
  });

  it("is waited for until the signal fires", async () => {
    const { load } = stage();
    load.served(peer, 5_000);
    const ending = new AbortController();
    const waiting = load.turn(peer, ending.signal);
    ending.abort(new Error("gone"));
    await expect(waiting).rejects.toThrow("gone");
  });
});
