/** Work in steps gives what the same work at a stretch gives. */
import { describe, expect, it } from "@jest/globals";
import { allAtOnce, mapInSteps, sortInSteps, type Steps } from "../../../chain/steps/steps.js";

interface Item {
  readonly key: number;
  readonly place: number;
}

/** Items with many equal keys, by a simple generator of the given seed. */
function itemsOf(count: number, seed: number): Item[] {
  let state = seed;
  return Array.from({ length: count }, (_, place) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return { key: state % 97, place };
  });
}

const byKey = (left: Item, right: Item) => left.key - right.key;

function countSteps<Result>(steps: Steps<Result>): number {
  let count = 0;
  while (steps.next().done !== true) count += 1;
  return count;
}

describe("work in steps", () => {
  it.each([0, 1, 2, 255, 256, 257, 512, 1_000, 5_003])("sorts %d items stably", (count) => {
    const items = itemsOf(count, 2026 + count);
    expect(allAtOnce(sortInSteps(items, byKey))).toEqual(items.toSorted(byKey));
  });

  it("sorts many items in many steps, and leaves the list as it is", () => {
    const items = itemsOf(5_000, 7);
    const before = [...items];
    // 20 runs to sort, and five rounds in which 5,000 items are merged: some 256 in a step.
    expect(countSteps(sortInSteps(items, byKey))).toBeGreaterThan(60);
    expect(items).toEqual(before);
  });

  it("makes one item for each, a few in a step", () => {
    expect(allAtOnce(mapInSteps([1, 2, 3], (value) => value * 2))).toEqual([2, 4, 6]);
    let mostInStep = 0;
    let inStep = 0;
    const steps = mapInSteps(Array.from({ length: 100 }), () => (inStep += 1));
    for (; steps.next().done !== true; inStep = 0) mostInStep = Math.max(mostInStep, inStep);
    expect(mostInStep).toBe(8);
  });

  it("throws what a step throws", () => {
    const fail = () => {
      throw new RangeError("no such item");
    };
    expect(() => allAtOnce(mapInSteps([1], fail))).toThrow("no such item");
  });
});
