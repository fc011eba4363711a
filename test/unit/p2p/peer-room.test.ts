/** Room for what peers sent and nobody has judged yet: who gets a place, and whose call goes for it. */
import { describe, expect, it } from "@jest/globals";
import * as fc from "fast-check";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { PeerRoom, type Place } from "../../../node/p2p/gossip/peer-room.js";

const [peer, other] = ["aa".repeat(20), "bb".repeat(20)] as [NodeId, NodeId];
const full = new Error("full");

const roomFor = (count: number, sizeBytes: number) => new PeerRoom({ count, sizeBytes }, full);
const areEnded = (places: readonly (Place | undefined)[]) =>
  places.map((place) => place?.signal.aborted);

describe("room for calls of peers", () => {
  it("counts bytes where those come to more", () => {
    const room = roomFor(100, 1_000);
    const [begun, last] = [300, 700].map((sizeBytes) => room.enter(peer, { count: 1, sizeBytes }));
    begun?.begin();
    // What is looked at keeps its place, and nobody gets one who would have as much.
    expect(room.enter(other, { count: 1, sizeBytes: 1_000 })).toBeUndefined();
    expect(room.enter(other, { count: 50, sizeBytes: 600 })).toBeDefined();
    expect(areEnded([begun, last])).toEqual([false, true]);
    last?.leave();
    expect(room.fits(peer, { count: 60, sizeBytes: 100 })).toBe(false);
    expect(room.fits(peer, { count: 49, sizeBytes: 100 })).toBe(true);
  });

  it("ends no call where what may go for a newcomer is not enough", () => {
    const room = roomFor(10, 10_000);
    const enter = (name: string, count: number) =>
      room.enter(name as NodeId, { count, sizeBytes: 1 });
    const begun = enter("honest", 4);
    begun?.begin();
    const waiting = [enter("honest", 1), enter("honest", 1), enter("a", 2), enter("b", 2)];
    expect(room.fits("c" as NodeId, { count: 3, sizeBytes: 1 })).toBe(false);
    expect(enter("c", 3)).toBeUndefined();
    expect(areEnded(waiting)).toEqual([false, false, false, false]);
    // For less than that the last of who has most goes, as far as it has to.
    expect(enter("c", 1)).toBeDefined();
    expect(areEnded(waiting)).toEqual([false, true, false, false]);
    expect(enter("d", 1)).toBeDefined();
    expect(areEnded(waiting)).toEqual([true, true, false, false]);
    expect(enter("e", 1)).toBeDefined();
    expect(areEnded([begun, ...waiting])).toEqual([false, true, true, true, false]);
  });

  it("gives a place to whom it says that it fits, and ends calls for nobody else", () => {
    const call = fc.record({
      from: fc.constantFrom(...["a", "b", "c", "d"].map((name) => name as NodeId)),
      count: fc.integer({ min: 1, max: 6 }),
      sizeBytes: fc.integer({ min: 1, max: 60 }),
      isBegun: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(call, { maxLength: 40 }), (calls) => {
        const room = roomFor(20, 200);
        const held: (Place & { readonly count: number; readonly sizeBytes: number })[] = [];
        const present = () => held.filter(({ signal }) => !signal.aborted);
        for (const { from, isBegun, ...amount } of calls) {
          const before = present().length;
          const isFitting = room.fits(from, amount);
          const place = room.enter(from, amount);
          expect(place !== undefined).toBe(isFitting);
          if (place === undefined) expect(present()).toHaveLength(before);
          else held.push({ ...place, ...amount });
          if (isBegun) place?.begin();
          const sum = (key: "count" | "sizeBytes") =>
            present().reduce((total, one) => total + one[key], 0);
          expect(sum("count")).toBeLessThanOrEqual(20);
          expect(sum("sizeBytes")).toBeLessThanOrEqual(200);
        }
      }),
    );
  });
});
