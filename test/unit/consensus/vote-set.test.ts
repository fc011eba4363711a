/**
 * Counting votes: CometBFT 0.38.17's types/vote_set_test.go and consensus/types/
 * height_vote_set_test.go. Ours keeps the first two votes of a validator without being told of a
 * majority by a peer (docs/consensus-scenarios.md says why).
 */
import { describe, expect, it } from "@jest/globals";
import type { BlockId } from "../../../chain/consensus/block-id.js";
import { COMMIT_FLAG } from "../../../chain/consensus/commit.js";
import { type Vote, VOTE_TYPE } from "../../../chain/consensus/vote.js";
import { decidingVotesOf, makeCommit } from "../../../node/consensus/machine/commit-votes.js";
import { HeightVotes } from "../../../node/consensus/machine/height-votes.js";
import { type AddOutcome, VoteSet } from "../../../node/consensus/machine/vote-set.js";
import { blockNamed, orderedValidators } from "./scenario.js";

const NIL = undefined;

function named(name: string): BlockId {
  const id = blockNamed(name);
  if (id === undefined) throw new Error("nil has no id");
  return id;
}

/** Votes of so many validators of equal power, counted one by one. */
class Count {
  readonly validators;
  set;

  constructor(size: number) {
    this.validators = orderedValidators(size).set;
    this.set = VoteSet.empty(this.validators);
  }

  voteOf(index: number, blockId: BlockId | undefined, change: Partial<Vote> = {}): Vote {
    const validator = this.validators.at(index);
    if (validator === undefined) throw new Error("no such validator");
    return {
      type: VOTE_TYPE.precommit,
      height: 1,
      round: 0,
      blockId,
      timeNs: BigInt(index),
      validatorAddress: validator.address,
      validatorIndex: index,
      signature: new Uint8Array(64).fill(index),
      ...change,
    };
  }

  add(blockId: BlockId | undefined, ...who: number[]): AddOutcome | undefined {
    let last: AddOutcome | undefined;
    for (const index of who) {
      const { set, result } = this.set.add(this.voteOf(index, blockId));
      this.set = set;
      last = result;
    }
    return last;
  }
}

const upTo = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => from + index);

describe("a set of votes", () => {
  it("shows a vote once it is there, and no majority for it (AddVote_Good)", () => {
    const count = new Count(10);
    expect(count.set.firstOf(0)).toBeUndefined();
    expect(count.set.majority).toBeUndefined();
    expect(count.add(NIL, 0)).toEqual({ outcome: "added" });
    expect(count.set.firstOf(0)).toEqual(count.voteOf(0, NIL));
    expect(count.set.voteFor(0, NIL)).toEqual(count.voteOf(0, NIL));
    expect(count.set.majority).toBeUndefined();
    expect([...count.set.votes()]).toHaveLength(1);
  });

  it("tells a conflict with both votes, and takes no stranger's (AddVote_Bad)", () => {
    const count = new Count(10);
    count.add(NIL, 0);
    const conflict = count.add(named("A"), 0);
    expect(conflict).toEqual({
      outcome: "conflict",
      first: count.voteOf(0, NIL),
      isCounted: true,
    });
    expect(count.set.hasQuorumOfAny).toBe(false);
    const stranger = count.voteOf(1, NIL, { validatorIndex: 2 });
    expect(() => count.set.add(stranger)).toThrow(/stranger/);
    const beyond = count.voteOf(1, NIL, { validatorIndex: 10 });
    expect(() => count.set.add(beyond)).toThrow(/stranger/);
    // Of a liar's votes each counts for its block, and its power once.
    count.add(named("A"), ...upTo(1, 6));
    expect([count.set.majority, count.set.hasQuorumOfAny]).toEqual([undefined, false]);
    count.add(named("A"), 6);
    expect(count.set.majority).toEqual({ blockId: named("A") });
  });

  it("has a majority with seven of ten, whoever else voted (2_3Majority)", () => {
    const count = new Count(10);
    count.add(NIL, ...upTo(0, 6));
    expect(count.set.majority).toBeUndefined();
    count.add(named("A"), 6);
    expect(count.set.majority).toBeUndefined();
    expect(count.set.hasQuorumOfAny).toBe(true);
    count.add(NIL, 7);
    expect(count.set.majority).toEqual({ blockId: NIL });
  });

  it("takes no block for another by part of its id (2_3MajorityRedux)", () => {
    const count = new Count(100);
    const { hash, parts } = named("A");
    const block = { hash, parts: { ...parts, total: 123 } };
    const other = named("B").hash;
    count.add(block, ...upTo(0, 66));
    expect(count.set.majority).toBeUndefined();
    const nearly: readonly (BlockId | undefined)[] = [
      NIL,
      { hash, parts: { total: 123, hash: other } },
      { hash, parts: { total: 124, hash: parts.hash } },
      { hash: other, parts: block.parts },
    ];
    for (const [index, blockId] of nearly.entries()) {
      count.add(blockId, 66 + index);
      expect(count.set.majority).toBeUndefined();
    }
    count.add(block, 70);
    expect(count.set.majority).toEqual({ blockId: block });
  });

  it("finds the majority behind a validator's second vote (Conflicts)", () => {
    const count = new Count(4);
    const [a, b] = [named("A"), named("B")];
    count.add(NIL, 0);
    expect(count.add(a, 0)).toMatchObject({ outcome: "conflict", isCounted: true });
    // A third one is proof enough, and not counted.
    expect(count.add(b, 0)).toMatchObject({ outcome: "conflict", isCounted: false });
    expect(count.set.voteFor(0, b)).toBeUndefined();
    count.add(a, 1);
    expect([count.set.majority, count.set.hasQuorumOfAny]).toEqual([undefined, false]);
    count.add(b, 2);
    expect([count.set.majority, count.set.hasQuorumOfAny]).toEqual([undefined, true]);
    expect(count.add(a, 2)).toMatchObject({ outcome: "conflict", isCounted: true });
    expect(count.set.majority).toEqual({ blockId: a });
    expect(count.add(a, 2)).toEqual({ outcome: "known" });
  });

  it("counts even a third vote where more than a third stand behind it", () => {
    const count = new Count(4);
    const [a, b] = [named("A"), named("B")];
    count.add(NIL, 0);
    count.add(b, 0);
    count.add(a, 1, 2);
    expect(count.set.isOfUse(count.voteOf(0, a))).toBe(true);
    expect(count.add(a, 0)).toMatchObject({ outcome: "conflict", isCounted: true });
    expect(count.set.majority).toEqual({ blockId: a });
  });
});

describe("a commit", () => {
  it("takes a majority's votes, nil's too, and leaves out all others (MakeCommit)", () => {
    const count = new Count(10);
    const [block, other] = [named("A"), named("B")];
    const make = () =>
      makeCommit(1, { round: 0, precommits: count.set }, count.validators).signatures;
    count.add(block, ...upTo(0, 6));
    expect(make).toThrow(/two thirds/);
    count.add(other, 6);
    count.add(block, 7);
    count.add(NIL, 8);
    const flags = make().map(({ flag }) => flag);
    const { absent, commit, nil } = COMMIT_FLAG;
    const six = upTo(0, 6).map(() => commit);
    expect(flags).toEqual([...six, absent, commit, nil, absent]);
    const third = make()[2];
    expect(third).toMatchObject({ timeNs: 2n, signature: new Uint8Array(64).fill(2) });
  });

  it("prefers a liar's vote for the block to the other one", () => {
    const count = new Count(4);
    count.add(named("B"), 0);
    count.add(named("A"), 0, 1, 2);
    const { signatures } = makeCommit(1, { round: 0, precommits: count.set }, count.validators);
    expect(signatures.map(({ flag }) => flag)).toEqual([2, 2, 2, 1]);
  });

  it("makes the votes again that it was made of (CommitToVoteSetWithVotesForNilBlock)", () => {
    const count = new Count(4);
    count.add(named("A"), 0, 1, 3);
    count.add(NIL, 2);
    const commit = makeCommit(1, { round: 7, precommits: count.set }, count.validators);
    const { round, precommits } = decidingVotesOf(commit, count.validators);
    expect(round).toBe(7);
    expect(precommits.majority).toEqual({ blockId: named("A") });
    expect(precommits.voteFor(2, NIL)).toMatchObject({ round: 7, timeNs: 2n });
    expect(makeCommit(1, { round, precommits }, count.validators)).toEqual(commit);
  });
});

describe("votes of rounds ahead", () => {
  it("are kept in two rounds for each validator, and no more (PeerCatchupRounds)", () => {
    const count = new Count(10);
    let votes = HeightVotes.empty(count.validators);
    const add = (who: number, round: number) => {
      const outcome = votes.add(count.voteOf(who, NIL, { round }), 0);
      votes = outcome.votes;
      return outcome.result.outcome;
    };
    expect([add(0, 999), add(0, 1_000), add(0, 1_001)]).toEqual(["added", "added", "too-far"]);
    expect(votes.isOfUse(count.voteOf(0, NIL, { round: 1_001 }), 0)).toBe(false);
    expect(add(1, 1_001)).toBe("added");
    expect(votes.knownRounds()).toEqual([999, 1_000, 1_001]);
    // The next round is never too far, and rounds that were reached make room.
    expect(add(0, 1)).toBe("added");
    expect(votes.isOfUse(count.voteOf(0, NIL, { round: 1_002 }), 999)).toBe(true);
  });
});
