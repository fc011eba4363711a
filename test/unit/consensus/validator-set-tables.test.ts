/**
 * The tables of CometBFT 0.38.17's types/validator_set_test.go, carried out by CometBFT itself over
 * keys of this test: priorities, turns and refusals are its own.
 */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import {
  MAX_TOTAL_POWER,
  type Validator,
  ValidatorSet,
  type ValidatorUpdate,
} from "../../../chain/consensus/validator-set.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { readScenarios } from "./cometbft-scenarios.js";

const { changes, turns } = readScenarios();
const keyOf = (index: number) => signingKeyOf(Buffer.alloc(32, index + 1)).publicKey;

const updatesOf = (list: readonly { readonly key: number; readonly power: string }[]) =>
  list.map(({ key, power }): ValidatorUpdate => ({ publicKey: keyOf(key), power: BigInt(power) }));

const shown = (set: ValidatorSet) =>
  set.validators.map(({ address, power, priority }) => ({
    address: address as string,
    power: power.toString(),
    priority: priority.toString(),
  }));

/** A validator with an address of its own choice; its key is never looked at. */
function named(name: string, power: bigint): Validator {
  const address = `0x${Buffer.from(name).toString("hex").padEnd(40, "0")}` as Address;
  return { address, publicKey: keyOf(0), power, priority: 0n };
}

/** The first set of a chain, as CometBFT's NewValidatorSet makes it. */
function firstSet(validators: readonly Validator[]): ValidatorSet {
  const [first] = validators;
  if (first === undefined) throw new Error("no validator");
  return ValidatorSet.restore(validators, first.address).advance(1);
}

/** Who proposes in so many turns, as the first letters of the addresses. */
function proposersOf(start: ValidatorSet, count: number): string[] {
  const names: string[] = [];
  for (let set = start; names.length < count; set = set.advance(1)) {
    names.push(Buffer.from(set.proposer.address.slice(2), "hex").toString().replaceAll("\0", ""));
  }
  return names;
}

/** What any set must satisfy after a change (verifyValidatorSet of CometBFT's test). */
function faultsOf(set: ValidatorSet): string[] {
  const priorities = set.validators.map(({ priority }) => priority);
  const sum = priorities.reduce((all, one) => all + one, 0n);
  const [highest, lowest] = [
    priorities.reduce((best, one) => (one > best ? one : best)),
    priorities.reduce((best, one) => (one < best ? one : best)),
  ];
  const count = BigInt(set.size);
  const faults: string[] = [];
  if (sum >= count || sum <= -count) faults.push(`priorities sum up to ${sum}`);
  if (highest - lowest > 2n * set.totalPower) faults.push("priorities spread too far");
  return faults;
}

describe("updates", () => {
  it.each(changes.map((row, index) => [`${row.test} ${index}`, row] as const))(
    "are CometBFT's: %s",
    (_, row) => {
      let set = ValidatorSet.genesis(updatesOf(row.start));
      if (row.turns > 0) set = set.advance(row.turns);
      const before = shown(set);
      const updates = updatesOf(row.updates);
      if (row.error === "") {
        const after = set.update(updates);
        expect(shown(after)).toEqual(row.validators);
        expect(set.update(updates.toReversed())).toEqual(after);
        if (row.updates.length > 0) expect(faultsOf(after)).toEqual([]);
        set = after;
      } else {
        expect(() => set.update(updates)).toThrow(/validator set refused/);
        expect(shown(set)).toEqual(row.validators);
      }
      if (row.updates.length === 0 || row.error !== "") expect(shown(set)).toEqual(before);
      const proposers = row.proposers.map(() => (set = set.advance(1)).proposer.address);
      expect(proposers).toEqual(row.proposers);
    },
  );

  it.each([
    ["a key twice (TestUpdatesForNewValidatorSet)", [1n, 100n, 1n, 123n]],
    ["a power of zero", [1n, 0n, 2n, 22n]],
    ["a negative power", [1n, 10n, 2n, -20n]],
    ["no validator at all (TestEmptySet)", []],
    [
      "too much power (TestValidatorSetTotalVotingPowerPanicsOnOverflow)",
      [1n, MAX_TOTAL_POWER, 2n, 1n],
    ],
  ])("begin no chain with %s", (_, pairs) => {
    const list: ValidatorUpdate[] = [];
    for (let at = 0; at < pairs.length; at += 2) {
      list.push({ publicKey: keyOf(Number(pairs[at])), power: pairs[at + 1] ?? 0n });
    }
    expect(() => ValidatorSet.genesis(list)).toThrow(/validator set refused/);
  });

  it("leave the set that they are made of as it was (TestCopy)", () => {
    const set = ValidatorSet.genesis(updatesOf([{ key: 1, power: "5" }]));
    const before = shown(set);
    set.advance(3);
    set.update(updatesOf([{ key: 2, power: "7" }]));
    expect(shown(set)).toEqual(before);
    // Turns change priorities and not the hash of the set (TestValidatorSet_ProposerPriorityHash).
    const two = set.update(updatesOf([{ key: 2, power: "7" }]));
    expect(two.advance(1).hash()).toBe(two.hash());
    expect(shown(two.advance(1))).not.toEqual(shown(two));
  });
});

describe("turns of proposers in published tables", () => {
  it.each(turns.map((row, index) => [index, row] as const))(
    "from any priorities are CometBFT's: %i (TestAvgProposerPriority and its kin)",
    (_, row) => {
      const validators = row.start.map(({ address, power, priority }) => ({
        address: address as Address,
        publicKey: keyOf(0),
        power: BigInt(power),
        priority: BigInt(priority),
      }));
      const [first] = validators;
      if (first === undefined) throw new Error("no validator");
      const set = ValidatorSet.restore(validators, first.address).advance(row.times);
      expect(set.validators.map(({ priority }) => priority.toString())).toEqual(row.priorities);
      expect(set.proposer.address).toBe(row.proposer);
    },
  );

  it("follow CometBFT's list (TestProposerSelection1)", () => {
    const set = firstSet([named("foo", 1_000n), named("baz", 330n), named("bar", 300n)]);
    const expected =
      "foo baz foo bar foo foo baz foo bar foo foo baz foo foo bar foo baz foo foo bar " +
      "foo foo baz foo bar foo foo baz foo bar foo foo baz foo foo bar foo baz foo foo bar " +
      "foo baz foo foo bar foo baz foo foo bar foo baz foo foo foo baz bar foo foo foo baz " +
      "foo bar foo foo baz foo bar foo foo baz foo bar foo foo baz foo bar foo foo baz foo " +
      "foo bar foo baz foo foo bar foo baz foo foo bar foo baz foo foo";
    expect(proposersOf(set, 99).join(" ")).toBe(expected);
  });

  it.each([
    ["equal powers, by address", [100n, 100n, 100n], "abcabcabcabcabc"],
    ["more than the others, not enough for two in a row", [100n, 100n, 400n], "ca"],
    ["enough for two in a row", [100n, 100n, 401n], "cca"],
  ])("are fair: %s (TestProposerSelection2)", (_, [a = 0n, b = 0n, c = 0n], expected) => {
    const validators = [named("a", a), named("b", b), named("c", c)];
    const sorted = validators.toSorted((left, right) => Number(right.power - left.power));
    expect(proposersOf(firstSet(sorted), expected.length).join("")).toBe(expected);
  });

  it("are as many as the share of power says (TestProposerSelection2)", () => {
    const set = firstSet([named("b", 5n), named("a", 4n), named("c", 3n)]);
    const names = proposersOf(set, 120);
    const counts = ["a", "b", "c"].map((name) => names.filter((one) => one === name).length);
    expect(counts).toEqual([40, 50, 30]);
  });

  it("come to the same through the store at every step (TestProposerSelection3)", () => {
    let set = firstSet([named("a", 1n), named("b", 1n), named("c", 1n), named("d", 1n)]);
    const order = proposersOf(set, 4);
    for (let turn = 0, step = 0; step < 200; step++) {
      expect(proposersOf(set, 1)).toEqual([order[turn % 4]]);
      const times = 1 + (step % 5);
      set = ValidatorSet.restore(set.validators, set.proposer.address).advance(times);
      turn += times;
    }
  });

  it("go forward only (TestIncrementProposerPriorityPositiveTimes)", () => {
    const set = firstSet([named("a", 1n)]);
    for (const times of [0, -1]) expect(() => set.advance(times)).toThrow(RangeError);
  });
});

describe("a stored set", () => {
  it("comes back equal (TestNewValidatorSetFromExistingValidators)", () => {
    const start = [0, 1, 2, 3, 4].map((key) => ({ publicKey: keyOf(key), power: BigInt(key + 1) }));
    const set = ValidatorSet.genesis(start).advance(5);
    const stored = ValidatorSet.restore(set.validators, set.proposer.address);
    expect(stored).toEqual(set);
    expect(stored.advance(3)).toEqual(set.advance(3));
  });

  it.each<[string, readonly Validator[]]>([
    ["nobody in it", []],
    ["a proposer who is not in it", [named("b", 1n)]],
    ["a key that is none", [{ ...named("a", 1n), publicKey: new Uint8Array(0) }]],
    ["a power of zero", [named("a", 0n)]],
  ])("is refused with %s (TestValidatorSet_ValidateBasic)", (_, validators) => {
    const proposer = named("a", 1n).address;
    expect(() => ValidatorSet.restore(validators, proposer)).toThrow(/validator set refused/);
  });
});
