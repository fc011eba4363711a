/**
 * The scenarios of CometBFT 0.38.17's consensus/state_test.go, over the machine alone. Validators
 * are named by their turns: 0 proposes in round 0, 1 in round 1, and so on.
 */
import { describe, expect, it } from "@jest/globals";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { validatorAddress, ValidatorSet } from "../../../chain/consensus/validator-set.js";
import { VOTE_TYPE, type VoteType } from "../../../chain/consensus/vote.js";
import { type Input, startHeight, STEP } from "../../../node/consensus/machine/consensus-state.js";
import { advance } from "../../../node/consensus/machine/state-machine.js";
import { orderedValidators, Scenario } from "./scenario.js";

const newHeight: Input = { type: "timeout", step: STEP.newHeight, round: 0 };

/** Four validators; the machine is the one with this turn. */
const four = (own: number) => new Scenario({ validators: 4, own });

/** Round 0 in which validator 0 locks its own block, and nobody else precommits it. */
function lockedInRound0(): Scenario {
  const scenario = four(0).start();
  scenario.prevote(0, "own0", 1, 2);
  expect(scenario.lock).toBe("0:own0");
  expect(scenario.ownVote("precommit", 0)).toBe("own0");
  scenario.precommit(0, "nil", 1, 2, 3).timeout("precommitWait");
  expect(scenario.place).toBe("1/1/propose");
  return scenario;
}

describe("proposer selection", () => {
  it("goes round by round to the next (ProposerSelection2)", () => {
    const { addresses } = orderedValidators(4);
    expect(new Set(addresses).size).toBe(4);
    const scenario = four(3).start();
    for (let round = 0; round < 8; round++) {
      expect(scenario.state.validators.proposer.address).toBe(addresses[round % 4]);
      scenario.timeout("propose").prevote(round, "nil", 0, 1, 2);
      scenario.precommit(round, "nil", 0, 1, 2).timeout("precommitWait");
    }
    // It proposed in its own rounds only.
    expect(scenario.proposed).toEqual(["3:own3/-1", "7:own7/-1"]);
  });

  it("is the same for who goes round by round and for who passes some over", () => {
    // Behind changes of power, where the spread of priorities is divided in some of the rounds.
    const places = [
      [366_051n, 141_201n],
      [48_997n, 103_968n],
      [33_412n, 438_934n],
      [371n, -332_579n],
      [358n, 88_818n],
      [67n, -440_342n],
    ] as const;
    const validators = places.map(([power, priority], index) => {
      const { publicKey } = signingKeyOf(Buffer.alloc(32, index + 1));
      return { address: validatorAddress(publicKey), publicKey, power, priority };
    });
    const [strong] = validators;
    if (strong === undefined) throw new RangeError("no validators");
    const set = ValidatorSet.restore(validators, strong.address);
    // Who has two thirds alone moves everybody on.
    const content = { height: 1, blockId: undefined, timeNs: 9n, signature: new Uint8Array(64) };
    const vote = (type: VoteType, round: number): Input => {
      const of = { validatorAddress: strong.address, validatorIndex: 0 };
      return { type: "vote", vote: { ...content, ...of, type, round } };
    };
    const start = { height: 1, validators: set, own: undefined, lastCommit: undefined };
    let slow = advance(startHeight(start), newHeight).state;
    const proposers = (round: number) => {
      slow = advance(slow, vote(VOTE_TYPE.precommit, round - 1)).state;
      slow = advance(slow, { type: "timeout", step: STEP.precommitWait, round: round - 1 }).state;
      const first = advance(startHeight(start), newHeight).state;
      const quick = advance(first, vote(VOTE_TYPE.prevote, round)).state;
      expect([slow.round, quick.round]).toEqual([round, round]);
      return [slow, quick].map((state) => state.validators.proposer.address);
    };
    for (let round = 1; round <= 8; round++) {
      const [oneByOne, atOnce] = proposers(round);
      expect([round, atOnce]).toEqual([round, oneByOne]);
    }
  });

  it("proposes nothing without a key (EnterProposeNoPrivValidator)", () => {
    const scenario = four(-1).start();
    expect(scenario.timeouts).toEqual(["propose/0"]);
    expect(scenario.proposed).toEqual([]);
    scenario.timeout("propose");
    expect(scenario.said).toEqual([]);
    expect(scenario.place).toBe("1/0/prevote");
  });

  it("proposes and prevotes at once with the key (EnterProposeYesPrivValidator)", () => {
    const scenario = four(0).start();
    expect(scenario.proposed).toEqual(["0:own0/-1"]);
    expect(scenario.said).toEqual(["prevote/0:own0"]);
    expect(scenario.place).toBe("1/0/prevote");
  });
});

describe("proposals", () => {
  it("prevotes nil for an invalid block (BadProposal)", () => {
    const scenario = four(1).start().propose(0, "bad", { isValid: false });
    expect(scenario.ownVote("prevote", 0)).toBe("nil");
    scenario.prevote(0, "bad", 0).prevote(0, "nil", 2, 3);
    expect(scenario.ownVote("precommit", 0)).toBe("nil");
    expect(scenario.lock).toBe("-1:nil");
  });

  it("halts when two thirds prevote an invalid block", () => {
    const scenario = four(1).start().propose(0, "bad", { isValid: false });
    scenario.prevote(0, "bad", 0, 2, 3);
    expect(scenario.halted).toMatch(/invalid block/);
  });

  it("takes the first proposal of a round and no other", () => {
    const scenario = four(1).start().propose(0, "A", { held: true });
    scenario.propose(0, "B", { held: true }).deliver("B").deliver("A");
    expect(scenario.ownVote("prevote", 0)).toBe("A");
  });

  it("follows a proposal that comes before its own time, as CometBFT does", () => {
    const scenario = four(1).propose(0, "A");
    expect(scenario.said).toEqual(["prevote/0:A"]);
    expect(scenario.start().said).toEqual(["prevote/0:A"]);
    scenario.prevote(0, "A", 0, 2).precommit(0, "A", 0, 2);
    expect(scenario.committed).toEqual({ block: "A", round: 0 });
  });

  it("waits for the polka that a proposal points to", () => {
    const scenario = four(2).start().timeout("propose").prevote(0, "nil", 3);
    scenario.precommit(0, "nil", 0, 1, 3).timeout("precommitWait");
    scenario.propose(1, "A", { polRound: 0 });
    expect(scenario.ownVote("prevote", 1)).toBe("none");
    // The vote for nil of 3 is not enough to stop a polka of the others.
    scenario.prevote(0, "A", 0, 1).prevote(0, "A", 3);
    expect(scenario.ownVote("prevote", 1)).toBe("A");
  });
});

describe("full rounds", () => {
  it("decides alone (FullRound1)", () => {
    const scenario = new Scenario({ validators: 1, own: 0 }).start();
    expect(scenario.said).toEqual(["prevote/0:own0", "precommit/0:own0"]);
    expect(scenario.committed).toEqual({ block: "own0", round: 0 });
  });

  it("votes nil twice without a proposal (FullRoundNil)", () => {
    const scenario = four(1).start().timeout("propose");
    expect(scenario.said).toEqual(["prevote/0:nil"]);
    scenario.prevote(0, "nil", 0, 2);
    expect(scenario.said).toEqual(["prevote/0:nil", "precommit/0:nil"]);
    expect(scenario.committed).toBeUndefined();
  });

  it("decides with another (FullRound2)", () => {
    const scenario = new Scenario({ validators: 2, own: 0 }).start();
    scenario.prevote(0, "own0", 1);
    expect(scenario.committed).toBeUndefined();
    scenario.precommit(0, "own0", 1);
    expect(scenario.committed).toEqual({ block: "own0", round: 0 });
  });

  it("needs strictly more than two thirds", () => {
    const scenario = new Scenario({ validators: 3, own: 0 }).start();
    scenario.prevote(0, "own0", 1);
    expect(scenario.ownVote("precommit", 0)).toBe("none");
    scenario.prevote(0, "own0", 2);
    expect(scenario.ownVote("precommit", 0)).toBe("own0");
  });
});

describe("locks", () => {
  it("prevotes the lock whatever is proposed, and precommits nil without a polka (LockNoPOL)", () => {
    const scenario = new Scenario({ validators: 2, own: 0 }).start();
    scenario.prevote(0, "own0", 1);
    expect(scenario.lock).toBe("0:own0");
    scenario.precommit(0, "bad", 1).timeout("precommitWait");
    // Round 1: no proposal comes.
    scenario.timeout("propose");
    expect(scenario.ownVote("prevote", 1)).toBe("own0");
    scenario.prevote(1, "bad", 1).timeout("prevoteWait");
    expect(scenario.ownVote("precommit", 1)).toBe("nil");
    expect(scenario.lock).toBe("0:own0");
    scenario.precommit(1, "bad", 1).timeout("precommitWait");
    // Round 2: its own turn, it offers the locked block.
    expect(scenario.proposed.at(-1)).toBe("2:own0/0");
    expect(scenario.ownVote("prevote", 2)).toBe("own0");
    scenario.prevote(2, "bad", 1).timeout("prevoteWait").precommit(2, "bad", 1);
    scenario.timeout("precommitWait");
    // Round 3: another block is proposed.
    scenario.propose(3, "C");
    expect(scenario.ownVote("prevote", 3)).toBe("own0");
    scenario.prevote(3, "C", 1).timeout("prevoteWait");
    expect(scenario.ownVote("precommit", 3)).toBe("nil");
    expect(scenario.lock).toBe("0:own0");
  });

  it("locks what a later polka is for (LockPOLRelock)", () => {
    const scenario = lockedInRound0().propose(1, "C");
    expect(scenario.ownVote("prevote", 1)).toBe("own0");
    scenario.prevote(1, "C", 1, 2, 3);
    expect(scenario.ownVote("precommit", 1)).toBe("C");
    expect(scenario.lock).toBe("1:C");
    scenario.precommit(1, "C", 1, 2);
    expect(scenario.committed).toEqual({ block: "C", round: 1 });
  });

  it("raises the round of the lock when its block gets a polka again", () => {
    const scenario = lockedInRound0().propose(1, "own0", { polRound: 0 });
    scenario.prevote(1, "own0", 1, 2);
    expect(scenario.lock).toBe("1:own0");
    expect(scenario.moments).toContain("Relock");
    expect(scenario.ownVote("precommit", 1)).toBe("own0");
  });

  it("unlocks by a polka for nil (LockPOLUnlock)", () => {
    const scenario = lockedInRound0().propose(1, "C");
    expect(scenario.ownVote("prevote", 1)).toBe("own0");
    scenario.prevote(1, "nil", 1, 2, 3);
    expect(scenario.ownVote("precommit", 1)).toBe("nil");
    expect(scenario.lock).toBe("-1:nil");
    expect(scenario.moments).toContain("Unlock");
    // Free again: it prevotes what is proposed next.
    scenario.precommit(1, "nil", 1, 2, 3).timeout("precommitWait").propose(2, "D");
    expect(scenario.ownVote("prevote", 2)).toBe("D");
  });

  it("unlocks by a polka for a block that is not here (LockPOLUnlockOnUnknownBlock)", () => {
    const scenario = lockedInRound0().timeout("propose");
    scenario.prevote(1, "unseen", 1, 2, 3).timeout("prevoteWait");
    expect(scenario.ownVote("precommit", 1)).toBe("nil");
    expect(scenario.lock).toBe("-1:nil");
    expect(scenario.state.wantedParts?.hash).toBeDefined();
    scenario.precommit(1, "nil", 1, 2, 3).timeout("precommitWait").propose(2, "D");
    expect(scenario.ownVote("prevote", 2)).toBe("D");
    scenario.prevote(2, "D", 1, 2, 3);
    expect(scenario.lock).toBe("2:D");
  });

  it("does not unlock by a polka older than the lock (LockPOLSafety1)", () => {
    // Round 0 had a polka that validator 0 did not see.
    const scenario = four(0).start().prevote(0, "nil", 1).prevote(0, "own0", 2);
    scenario.timeout("prevoteWait");
    expect(scenario.ownVote("precommit", 0)).toBe("nil");
    scenario.precommit(0, "nil", 1, 2, 3).timeout("precommitWait").propose(1, "C");
    scenario.prevote(1, "C", 1, 2, 3);
    expect(scenario.lock).toBe("1:C");
    scenario.precommit(1, "nil", 1, 2, 3).timeout("precommitWait").timeout("propose");
    expect(scenario.ownVote("prevote", 2)).toBe("C");
    // Now the votes of round 0 come: they make a polka for own0.
    scenario.prevote(0, "own0", 3);
    expect(scenario.lock).toBe("1:C");
    expect(scenario.moments).not.toContain("Unlock");
  });

  it("does not follow a proposal whose polka is older than the lock (LockPOLSafety2)", () => {
    const scenario = four(0).start().prevote(0, "nil", 1, 2, 3);
    scenario.precommit(0, "nil", 1, 2, 3).timeout("precommitWait").propose(1, "C");
    scenario.prevote(1, "C", 1, 2, 3);
    expect(scenario.lock).toBe("1:C");
    scenario.precommit(1, "nil", 2, 3).timeout("precommitWait");
    // B had a polka in round 0, which the liars among the others show only now.
    scenario.propose(2, "B", { polRound: 0 });
    scenario.prevote(0, "B", 1, 2, 3);
    expect(scenario.ownVote("prevote", 2)).toBe("C");
    expect(scenario.lock).toBe("1:C");
  });
});

describe("valid blocks", () => {
  it("are proposed again with the round of their polka (ProposeValidBlock)", () => {
    const scenario = four(0).start().prevote(0, "own0", 1, 2, 3);
    scenario.precommit(0, "nil", 1, 2, 3).timeout("precommitWait").timeout("propose");
    // A polka for nil lifts the lock, the valid block stays.
    scenario.prevote(1, "nil", 1, 2, 3);
    expect(scenario.lock).toBe("-1:nil");
    scenario.precommit(1, "nil", 1, 2, 3).timeout("precommitWait");
    for (const round of [2, 3]) {
      scenario.timeout("propose").prevote(round, "nil", 1, 2, 3);
      scenario.precommit(round, "nil", 1, 2, 3).timeout("precommitWait");
    }
    expect(scenario.proposed).toEqual(["0:own0/-1", "4:own0/0"]);
    expect(scenario.ownVote("prevote", 4)).toBe("own0");
  });

  it("come of prevotes that arrive late (SetValidBlockOnDelayedPrevote)", () => {
    const scenario = four(0).start().prevote(0, "own0", 1).prevote(0, "nil", 2);
    scenario.timeout("prevoteWait");
    expect(scenario.ownVote("precommit", 0)).toBe("nil");
    expect(scenario.valid).toBe("-1:nil");
    scenario.prevote(0, "own0", 3);
    expect(scenario.valid).toBe("0:own0");
    expect(scenario.lock).toBe("-1:nil");
  });

  it("come of a proposal that arrives late (SetValidBlockOnDelayedProposal)", () => {
    const scenario = four(1).start().timeout("propose");
    expect(scenario.ownVote("prevote", 0)).toBe("nil");
    scenario.prevote(0, "A", 0, 2, 3);
    expect(scenario.valid).toBe("-1:nil");
    expect(scenario.moments).toContain("ValidBlock");
    scenario.timeout("prevoteWait");
    expect(scenario.ownVote("precommit", 0)).toBe("nil");
    scenario.propose(0, "A");
    expect(scenario.valid).toBe("0:A");
  });
});

describe("time limits", () => {
  it("wait for precommits after two thirds of nil (WaitingTimeoutOnNilPolka)", () => {
    const scenario = four(1).start().precommit(0, "nil", 0, 2, 3);
    expect(scenario.timeouts).toContain("precommitWait/0");
    expect(scenario.place).toBe("1/0/precommit");
    scenario.timeout("precommitWait");
    expect(scenario.state.round).toBe(1);
  });

  it("follow others into a later round (WaitingTimeoutProposeOnNewRound)", () => {
    const scenario = four(3).start().prevote(1, "nil", 0, 1, 2);
    expect(scenario.place).toBe("1/1/propose");
    scenario.timeout("propose");
    expect(scenario.ownVote("prevote", 1)).toBe("nil");
    expect(scenario.ownVote("precommit", 1)).toBe("nil");
  });

  it("skip to a later round by its precommits (RoundSkipOnNilPolkaFromHigherRound)", () => {
    const scenario = four(3).start().precommit(1, "nil", 0, 1, 2);
    expect(scenario.place).toBe("1/1/precommit");
    expect(scenario.ownVote("precommit", 1)).toBe("nil");
    scenario.timeout("precommitWait");
    expect(scenario.place).toBe("1/2/propose");
  });

  it("keep waiting for a proposal after two thirds of nil prevotes", () => {
    // TestWaitTimeoutProposeOnNilPolkaForTheCurrentRound
    const scenario = four(3).start().prevote(0, "nil", 0, 1, 2);
    expect(scenario.place).toBe("1/0/propose");
    scenario.timeout("propose");
    expect(scenario.ownVote("prevote", 0)).toBe("nil");
    expect(scenario.ownVote("precommit", 0)).toBe("nil");
  });

  it("of a round that is over change nothing", () => {
    const scenario = four(3).start().precommit(1, "nil", 0, 1, 2);
    const { place } = scenario;
    const said = [...scenario.said];
    expect(scenario.timeout("newHeight").place).toBe(place);
    expect(scenario.timeout("propose").place).toBe(place);
    expect(scenario.said).toEqual(said);
  });

  it("start anew with each height (ResetTimeoutPrecommitUponNewHeight)", () => {
    const scenario = four(1).start().precommit(0, "nil", 0, 2, 3);
    expect(scenario.state.isPrecommitTimeoutSet).toBe(true);
    expect(four(1).state.isPrecommitTimeoutSet).toBe(false);
  });
});

describe("commits", () => {
  it("ask for the block that was decided (EmitNewValidBlockEventOnCommitWithoutBlock)", () => {
    const scenario = four(1).start().precommit(0, "A", 0, 2, 3);
    expect(scenario.place).toBe("1/0/commit");
    expect(scenario.moments).toContain("ValidBlock");
    expect(scenario.committed).toBeUndefined();
    scenario.deliver("A");
    expect(scenario.committed).toEqual({ block: "A", round: 0 });
  });

  it("may be of an earlier round (CommitFromPreviousRound)", () => {
    const scenario = four(2).start().timeout("propose").prevote(0, "nil", 0, 1);
    scenario.precommit(0, "nil", 3).precommit(0, "A", 0, 1).timeout("precommitWait");
    expect(scenario.state.round).toBe(1);
    scenario.precommit(0, "A", 3).precommit(0, "A", 0);
    expect(scenario.committed).toBeUndefined();
    // 3 said two things; with the own nil there is no majority for A without one more.
    expect(scenario.conflicts).toHaveLength(1);
    expect(scenario.place).toBe("1/1/commit");
    expect(scenario.state.commitRound).toBe(0);
    scenario.deliver("A");
    expect(scenario.committed).toEqual({ block: "A", round: 0 });
  });

  it("come of a locked block when the missing precommit arrives late (Halt1)", () => {
    const scenario = four(0).start().prevote(0, "own0", 1, 2, 3);
    scenario.precommit(0, "nil", 1).precommit(0, "own0", 2).timeout("precommitWait");
    expect(scenario.place).toBe("1/1/propose");
    scenario.timeout("propose");
    expect(scenario.ownVote("prevote", 1)).toBe("own0");
    scenario.precommit(0, "own0", 3);
    expect(scenario.committed).toEqual({ block: "own0", round: 0 });
  });

  it("end the height: nothing that comes later says anything more", () => {
    const scenario = four(0).start().prevote(0, "own0", 1, 2, 3);
    scenario.precommit(0, "own0", 1, 2);
    expect(scenario.committed).toBeDefined();
    const { said } = scenario;
    const before = [...said];
    scenario.timeout("precommitWait").prevote(1, "nil", 1, 2, 3).precommit(0, "own0", 3);
    expect(scenario.said).toEqual(before);
    expect([...scenario.state.votes.precommits(0).votes()]).toHaveLength(4);
  });

  it("halt when two thirds precommit an invalid block", () => {
    const scenario = four(1).start().propose(0, "bad", { isValid: false });
    scenario.precommit(0, "bad", 0, 2, 3);
    expect(scenario.halted).toMatch(/invalid block/);
    expect(scenario.committed).toBeUndefined();
  });
});

describe("double votes", () => {
  it("are told of, prevotes as well as precommits (SlashingPrevotes, SlashingPrecommits)", () => {
    const scenario = four(0).start().prevote(0, "own0", 1).prevote(0, "X", 1);
    expect(scenario.conflicts).toHaveLength(1);
    scenario.precommit(0, "nil", 2).precommit(0, "X", 2);
    expect(scenario.conflicts).toHaveLength(2);
    expect(scenario.conflicts[1]?.[0].blockId).toBeUndefined();
  });

  it("of rounds far ahead are bounded for each validator", () => {
    const scenario = four(0).start();
    for (let round = 5; round < 50; round++) scenario.prevote(round, "nil", 1);
    expect(scenario.state.votes.knownRounds().filter((round) => round > 1)).toHaveLength(2);
  });
});
