/** Points, bans, claims and budgets on a clock that the test moves. */
import { describe, expect, it } from "@jest/globals";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { HeightClaims } from "../../../node/p2p/blocks/height-claims.js";
import { PeerScores } from "../../../node/p2p/peers/peer-scores.js";
import { TokenBucket, TrafficMeter } from "../../../node/p2p/peers/traffic-meter.js";
import { TestClock } from "./clock.js";

const peer = "aa".repeat(20) as NodeId;
const other = "bb".repeat(20) as NodeId;

describe("scores", () => {
  it("of peers that the operator chose count what is invalid, not what is too much", () => {
    const scores = new PeerScores(new TestClock(), new Set([peer]));
    for (let count = 0; count < 100; count++) {
      expect([scores.report(peer, "flood"), scores.report(peer, "overload")]).toEqual([
        false,
        false,
      ]);
    }
    expect(scores.report(other, "flood")).toBe(true);
    expect(scores.report(peer, "falseBlock")).toBe(true);
  });

  it("ban at the third invalid message, only that peer, and forgive after the ban", () => {
    const clock = new TestClock();
    const scores = new PeerScores(clock);
    const bans: string[] = [];
    scores.onBan((nodeId, offence) => bans.push(`${nodeId} ${offence}`));
    expect([1, 2, 3].map(() => scores.report(peer, "invalidMessage"))).toEqual([
      false,
      false,
      true,
    ]);
    expect([scores.isBanned(peer), scores.isBanned(other)]).toEqual([true, false]);
    expect(bans).toEqual([`${peer} invalidMessage`]);
    clock.timeMs += 599_000;
    expect(scores.isBanned(peer)).toBe(true);
    clock.timeMs += 2_000;
    expect(scores.isBanned(peer)).toBe(false);
    expect(scores.report(peer, "invalidMessage")).toBe(false);
  });

  it("forget what happened long ago", () => {
    const clock = new TestClock();
    const scores = new PeerScores(clock);
    for (let count = 0; count < 10; count++) {
      expect(scores.report(peer, "invalidMessage")).toBe(false);
      clock.timeMs += 500_000;
    }
  });

  it("ban at once for a false block or a flood", () => {
    const scores = new PeerScores(new TestClock());
    expect(scores.report(peer, "falseBlock")).toBe(true);
    expect(scores.report(other, "flood")).toBe(true);
  });
});

describe("a budget", () => {
  it("allows a burst, then the steady rate", () => {
    const clock = new TestClock();
    const bucket = new TokenBucket({ perSecond: 10, burst: 100, clock });
    expect(bucket.take(100)).toBe(true);
    expect(bucket.take(1)).toBe(false);
    clock.timeMs += 1_000;
    expect(bucket.take(9)).toBe(true);
    expect(bucket.take(1)).toBe(false);
    clock.timeMs += 3_600_000;
    expect(bucket.take(100)).toBe(true);
    expect(bucket.take(1)).toBe(false);
  });

  it("lets through what was asked for", () => {
    const bucket = new TokenBucket({ perSecond: 1, burst: 10, clock: new TestClock() });
    bucket.give(1_000);
    expect(bucket.take(1_010)).toBe(true);
    expect(bucket.take(1)).toBe(false);
  });

  it("does not pile up what was asked for and was not used", () => {
    const clock = new TestClock();
    let floods = 0;
    const meter = new TrafficMeter(clock, { onFlood: () => floods++, onExpected: () => undefined });
    // An hour of small answers, each of which might have been four megabytes.
    for (let count = 0; count < 10_000; count++) meter.expect(4 * 1024 * 1024);
    meter.received(300 * 1024 * 1024);
    expect(floods).toBe(1);
  });

  it("reports a peer that sends more than any honest one", () => {
    const clock = new TestClock();
    let floods = 0;
    const meter = new TrafficMeter(clock, { onFlood: () => floods++, onExpected: () => undefined });
    // A block of four megabytes twice a second, for a minute.
    for (let half = 0; half < 120; half++) {
      meter.received(4 * 1024 * 1024);
      clock.timeMs += 500;
    }
    expect(floods).toBe(0);
    for (let half = 0; half < 3; half++) {
      meter.received(64 * 1024 * 1024);
      clock.timeMs += 500;
    }
    expect(floods).toBe(1);
  });
});

describe("claims of heights", () => {
  it("are remembered of 10,000 peers, those of the connected ones first", () => {
    const clock = new TestClock();
    const limits = { patienceMs: 1_000, laterMs: 1_000, strangersMs: 1_000, nearMs: 1_000 };
    const claims = new HeightClaims(clock, limits);
    const claim = (nodeId: NodeId) => ({ nodeId, height: 10 });
    claims.hold([claim(peer), claim(other)], 5);
    clock.timeMs += 600;
    expect([peer, other].map((one) => claims.isDoubtful(one, 10, 5))).toEqual([true, true]);
    // Days of catching up, with peers that come under ever new keys, and one that stays.
    for (let key = 0; key < 10_000; key++) {
      claims.hold([claim(other), claim(key.toString(16).padStart(40, "0") as NodeId)], 5);
    }
    expect([peer, other].map((one) => claims.isDoubtful(one, 10, 5))).toEqual([false, true]);
  });

  it.each([
    ["who gives none", undefined],
    ["who gave each late", peer],
  ])(
    "are held by bytes of no block for some minutes in all, while others give: of %s",
    (_, known) => {
      const clock = new TestClock();
      const usual = { patienceMs: 6_000, laterMs: 30_000, strangersMs: 15_000, nearMs: 60_000 };
      const claims = new HeightClaims(clock, usual);
      const startMs = clock.timeMs;
      let own = 0;
      while (claims.hold([{ nodeId: peer, height: own + 9 }], own, true)) {
        expect(clock.timeMs - startMs).toBeLessThan(600_000);
        clock.timeMs += 1_000;
        // A block of the network, which comes in a moment.
        if (clock.timeMs % 2_000 === 0) claims.back(known ?? other, 5);
        own = Math.floor((clock.timeMs - startMs) / 2_000);
      }
      expect(clock.timeMs - startMs).toBeGreaterThan(150_000);
    },
  );
});
