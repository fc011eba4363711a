/** Turns and changes of validators: tables of CometBFT 0.38.17's types/validator_set_test.go. */
import { describe, expect, it } from "@jest/globals";
import {
  MAX_TOTAL_POWER,
  type Validator,
  validatorAddress,
  ValidatorSet,
} from "../../../chain/consensus/validator-set.js";
import type { Address } from "../../../chain/address.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";

const keyOf = (index: number) => signingKeyOf(Buffer.alloc(32, index + 1)).publicKey;

/** A validator with an address of its own choice: who wins a tie depends on it. */
function named(index: number, power: bigint, priority = 0n): Validator {
  const address = `0x${index.toString(16).padStart(2, "0").padEnd(40, "0")}` as Address;
  return { address, publicKey: keyOf(index), power, priority };
}

describe("turns of proposers", () => {
  const [vp0, vp1, vp2, total] = [10n, 1n, 1n, 12n];
  /** TestAveragingInIncrementProposerPriorityWithVotingPower */
  const rows: readonly (readonly [times: number, priorities: bigint[], proposer: number])[] = [
    [1, [vp0 - total, vp1, vp2], 0],
    [2, [2n * vp0 - 2n * total, 2n * vp1, 2n * vp2], 0],
    [3, [3n * (vp0 - total), 3n * vp1, 3n * vp2], 0],
    [4, [4n * (vp0 - total), 4n * vp1, 4n * vp2], 0],
    [5, [4n * (vp0 - total) + vp0, 5n * vp1 - total, 5n * vp2], 1],
    [6, [6n * vp0 - 5n * total, 6n * vp1 - total, 6n * vp2], 0],
    [7, [7n * vp0 - 6n * total, 7n * vp1 - total, 7n * vp2], 0],
    [8, [8n * vp0 - 7n * total, 8n * vp1 - total, 8n * vp2], 0],
    [9, [9n * vp0 - 7n * total, 9n * vp1 - total, 9n * vp2 - total], 2],
    [10, [10n * vp0 - 8n * total, 10n * vp1 - total, 10n * vp2 - total], 0],
    [11, [11n * vp0 - 9n * total, 11n * vp1 - total, 11n * vp2 - total], 0],
  ];
  const start = [named(0, vp0), named(1, vp1), named(2, vp2)];
  const first = start[0]?.address;
  if (first === undefined) throw new Error("no validator");

  it.each(rows)("after %i of them are CometBFT's", (times, priorities, proposer) => {
    const set = ValidatorSet.restore(start, first).advance(times);
    expect(set.validators.map(({ priority }) => priority)).toEqual(priorities);
    expect(set.proposer.address).toBe(start[proposer]?.address);
    // One by one comes to the same, as stored sets are advanced.
    let single = ValidatorSet.restore(start, first);
    for (let turn = 0; turn < times; turn++) single = single.advance(1);
    expect(single.validators).toEqual(set.validators);
  });

  it("are centred first (TestAveragingInIncrementProposerPriority)", () => {
    const uneven = [named(0, 1n, 100n), named(1, 1n, -10n), named(2, 1n, 1n)];
    // 91 / 3 rounded down is 30; the spread of 110 is divided by 19 before, the window being 6.
    const set = ValidatorSet.restore(uneven, first).advance(1);
    const sum = set.validators.reduce((all, { priority }) => all + priority, 0n);
    expect(sum).toBeGreaterThanOrEqual(0n);
    expect(sum).toBeLessThan(3n);
  });

  it("come as often as the power says (ProposerSelection3)", () => {
    const powers = [1n, 2n, 3n];
    let set = ValidatorSet.genesis(powers.map((power, at) => ({ publicKey: keyOf(at), power })));
    const counts = new Map<string, number>();
    for (let turn = 0; turn < 120; turn++) {
      counts.set(set.proposer.address, (counts.get(set.proposer.address) ?? 0) + 1);
      set = set.advance(1);
    }
    expect(powers.map((_, at) => counts.get(validatorAddress(keyOf(at))))).toEqual([20, 40, 60]);
  });
});

describe("changes", () => {
  const base = () =>
    ValidatorSet.genesis([0, 1, 2].map((at) => ({ publicKey: keyOf(at), power: 10n })));
  const change = (at: number, power: bigint) => ({ publicKey: keyOf(at), power });

  it.each([
    ["the same key twice", [change(1, 5n), change(1, 6n)]],
    ["a negative power", [change(1, -1n)]],
    ["the removal of a stranger", [change(9, 0n)]],
    ["the removal of all", [change(0, 0n), change(1, 0n), change(2, 0n)]],
    ["more power than there may be", [change(1, MAX_TOTAL_POWER)]],
    ["a key of another length", [{ publicKey: new Uint8Array(33), power: 1n }]],
  ])("are refused for %s", (_, updates) => {
    expect(() => base().update(updates)).toThrow(/validator set refused/);
  });

  it("come to the same in any order", () => {
    const updates = [change(0, 0n), change(1, 50n), change(5, 7n), change(6, 8n)];
    const orders = [updates, updates.toReversed(), [...updates.slice(2), ...updates.slice(0, 2)]];
    const sets = orders.map((order) => base().update(order).validators);
    expect(sets[1]).toEqual(sets[0]);
    expect(sets[2]).toEqual(sets[0]);
    expect(sets[0]?.map(({ power }) => power)).toEqual([50n, 10n, 8n, 7n]);
  });

  it("let a newcomer wait for its first turn", () => {
    const set = base().update([change(7, 10n)]);
    const newcomer = validatorAddress(keyOf(7));
    const lowest = set.validators.toSorted((a, b) => (a.priority < b.priority ? -1 : 1))[0];
    expect(lowest?.address).toBe(newcomer);
  });

  it("of nothing change nothing", () => {
    const set = base();
    expect(set.update([])).toBe(set);
  });
});
