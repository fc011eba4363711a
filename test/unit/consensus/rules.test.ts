/**
 * Single rules of consensus/state.go that CometBFT's own scenarios pass by: each has a scenario here
 * that comes out otherwise without it.
 */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { blockNamed, Scenario } from "./scenario.js";

const four = (own: number) => new Scenario({ validators: 4, own });

/** A node that only follows. */
const follower = () => four(-1);

/** Validator 0 locked its block in round 0 and is in round 1. */
function lockedInRound0(): Scenario {
  const scenario = four(0).start().prevote(0, "own0", 1, 2).precommit(0, "nil", 1, 2, 3);
  scenario.timeout("precommitWait");
  expect([scenario.lock, scenario.place]).toEqual(["0:own0", "1/1/propose"]);
  return scenario;
}

/** A follower that is locked on A and in round 1. */
function lockedFollower(): Scenario {
  const scenario = follower().start().propose(0, "A").prevote(0, "A", 0, 1, 2);
  scenario.precommit(0, "nil", 0, 1, 2).timeout("precommitWait");
  expect([scenario.lock, scenario.state.round]).toEqual(["0:A", 1]);
  return scenario;
}

const wants = ({ state }: Scenario, name: string) =>
  state.wantedParts?.hash === blockNamed(name)?.parts.hash;

describe("proposals", () => {
  it("of another round than the present one are not taken", () => {
    const scenario = four(2).start().propose(1, "A");
    expect([scenario.state.proposal, scenario.said]).toEqual([undefined, []]);
    expect(scenario.propose(0, "B").said).toEqual(["prevote/0:B"]);
  });

  it("are not replaced by a second one, which points to a polka that is not here", () => {
    const scenario = four(2).start().timeout("propose").prevote(0, "nil", 3);
    scenario.precommit(0, "nil", 0, 1, 3).timeout("precommitWait");
    scenario.propose(1, "A", { held: true }).propose(1, "A", { polRound: 0, held: true });
    expect(scenario.deliver("A").ownVote("prevote", 1)).toBe("A");
  });

  it("that came before the height began are still there when it begins", () => {
    const scenario = four(1).propose(0, "A", { held: true }).start();
    expect(scenario.deliver("A").said).toEqual(["prevote/0:A"]);
  });
});

describe("timeouts", () => {
  it("of steps that are over are not even told of", () => {
    const scenario = four(1).start().precommit(1, "nil", 0, 2, 3).timeout("precommitWait");
    expect(scenario.place).toBe("1/2/propose");
    const before = [...scenario.moments];
    scenario.timeout("propose", 0).timeout("prevoteWait", 1).timeout("precommitWait", 1);
    scenario.timeout("newHeight", 0);
    expect([scenario.moments, scenario.place]).toEqual([before, "1/2/propose"]);
  });

  it("for precommits make a node that said nothing precommit nil before it goes on", () => {
    const scenario = four(3).start().precommit(0, "A", 0).precommit(0, "B", 2);
    expect(scenario.timeouts).toEqual(["propose/0"]);
    scenario.precommit(0, "nil", 1);
    expect([scenario.timeouts, scenario.place]).toEqual([
      ["propose/0", "precommitWait/0"],
      "1/0/propose",
    ]);
    scenario.timeout("precommitWait");
    expect([scenario.said, scenario.place]).toEqual([["precommit/0:nil"], "1/1/propose"]);
  });

  it("for precommits are asked for once in a round", () => {
    const scenario = four(1).start().precommit(0, "A", 0).precommit(0, "B", 2);
    scenario.precommit(0, "nil", 3).timeout("propose").prevote(0, "nil", 0, 2, 3);
    expect(scenario.ownVote("precommit", 0)).toBe("nil");
    expect(scenario.timeouts.filter((one) => one === "precommitWait/0")).toHaveLength(1);
  });

  it("for precommits of a later round bring a node into it", () => {
    const scenario = four(1).start().precommit(2, "A", 0).precommit(2, "B", 2);
    expect(scenario.place).toBe("1/0/propose");
    scenario.precommit(2, "nil", 3);
    expect([scenario.place, scenario.timeouts.at(-1)]).toEqual(["1/2/propose", "precommitWait/2"]);
  });
});

describe("two thirds of prevotes", () => {
  it("for a block that is not here are waited with, and fetch it", () => {
    const scenario = four(1).start().timeout("propose").prevote(0, "A", 0, 2, 3);
    expect([scenario.place, scenario.ownVote("precommit", 0)]).toEqual(["1/0/prevoteWait", "none"]);
    expect(scenario.timeouts).toEqual(["propose/0", "prevoteWait/0"]);
    expect(wants(scenario, "A")).toBe(true);
    scenario.propose(0, "A").timeout("prevoteWait");
    expect([scenario.ownVote("precommit", 0), scenario.lock]).toEqual(["A", "0:A"]);
  });

  it("for another block than the proposed one put it aside", () => {
    const scenario = four(1).start().propose(0, "A").prevote(0, "B", 0, 2, 3);
    expect([scenario.isProposalBlock("A"), wants(scenario, "B")]).toEqual([false, true]);
    expect(scenario.moments).toContain("ValidBlock");
    scenario.deliver("B");
    expect(scenario.valid).toBe("0:B");
  });

  it("for different things are waited with, by who only follows too", () => {
    const scenario = follower().start().prevote(0, "A", 0).prevote(0, "nil", 1);
    scenario.prevote(0, "B", 2).timeout("propose");
    expect(scenario.timeouts).toEqual(["propose/0", "prevoteWait/0"]);
  });

  it("of an earlier round make no block valid in the present one", () => {
    const scenario = four(0).start().prevote(0, "own0", 1).prevote(0, "nil", 2);
    scenario.timeout("prevoteWait").precommit(0, "nil", 1, 2, 3).timeout("precommitWait");
    scenario.propose(1, "own0").prevote(0, "own0", 3);
    expect([scenario.state.round, scenario.valid]).toEqual([1, "-1:nil"]);
  });
});

describe("a lock", () => {
  it("is lifted by a polka of a round since, also when it comes late", () => {
    const scenario = lockedInRound0().timeout("propose").precommit(1, "nil", 1, 2, 3);
    scenario.timeout("precommitWait").timeout("propose");
    expect([scenario.ownVote("prevote", 2), scenario.lock]).toEqual(["own0", "0:own0"]);
    scenario.prevote(1, "nil", 1, 2, 3);
    expect([scenario.lock, scenario.moments.at(-1)]).toEqual(["-1:nil", "Unlock"]);
  });

  it("holds until the node has come to the round of the polka", () => {
    const scenario = lockedInRound0().prevote(2, "nil", 1, 2, 3);
    expect([scenario.place, scenario.lock]).toEqual(["1/2/propose", "0:own0"]);
    scenario.timeout("propose");
    expect(scenario.ownVote("prevote", 2)).toBe("own0");
    expect(scenario.lock).toBe("-1:nil");
  });

  it("is lifted by a polka for nil that was there before its round", () => {
    const scenario = lockedFollower().prevote(2, "nil", 0, 1, 2);
    expect([scenario.place, scenario.lock]).toEqual(["1/2/propose", "0:A"]);
    expect(scenario.timeout("propose").lock).toBe("-1:nil");
  });

  it("is lifted by a polka for an unknown block that was there before its round", () => {
    const scenario = lockedFollower().prevote(2, "unseen", 0, 1, 2).timeout("propose");
    expect([scenario.place, scenario.lock]).toEqual(["1/2/prevoteWait", "0:A"]);
    scenario.timeout("prevoteWait");
    expect([scenario.lock, wants(scenario, "unseen")]).toEqual(["-1:nil", true]);
  });
});

describe("a decision", () => {
  it.each([
    ["prevotes of a later round", "nil", "none"],
    ["precommits of a later round", "none", "nil"],
    ["precommits of it for different things", "none", "B"],
  ])("is waited for with its block, past %s", (_, prevoted, precommitted) => {
    const scenario = four(1).start().precommit(0, "A", 0, 2, 3);
    if (prevoted !== "none") scenario.prevote(1, prevoted, 0, 2, 3);
    if (precommitted !== "none") {
      scenario.precommit(1, precommitted, 0).precommit(1, "nil", 2, 3).timeout("precommitWait", 1);
    }
    expect([scenario.place, scenario.committed]).toEqual(["1/0/commit", undefined]);
    expect(scenario.deliver("A").committed).toEqual({ block: "A", round: 0 });
    // It spoke before the decision, and says nothing in the later round.
    expect(scenario.said).toEqual(["precommit/0:nil"]);
  });

  it("is made once, also when its proposal comes afterwards", () => {
    const scenario = follower().start().precommit(0, "A", 0, 1, 2).deliver("A");
    expect(scenario.committed).toEqual({ block: "A", round: 0 });
    scenario.committed = undefined;
    scenario.propose(0, "A").precommit(0, "A", 3);
    expect(scenario.committed).toBeUndefined();
  });

  it("is begun once, however many precommits follow", () => {
    const scenario = follower().start().precommit(0, "A", 0, 1, 2);
    const before = [...scenario.moments];
    expect(scenario.precommit(0, "A", 3).moments).toEqual(before);
  });

  it("for the locked block needs nothing more, whatever is proposed by then", () => {
    const scenario = four(0).start().prevote(0, "own0", 1, 2, 3);
    scenario.precommit(0, "nil", 1).precommit(0, "own0", 2).timeout("precommitWait");
    scenario.propose(1, "C");
    const before = scenario.moments.length;
    scenario.precommit(0, "own0", 3);
    expect(scenario.committed).toEqual({ block: "own0", round: 0 });
    expect(scenario.moments.slice(before)).not.toContain("ValidBlock");
  });
});

describe("a key that is in no validator set", () => {
  it("neither proposes nor votes", () => {
    const scenario = follower();
    scenario.state = { ...scenario.state, own: `0x${"99".repeat(20)}` as Address };
    scenario.start().propose(0, "A").prevote(0, "A", 0, 1, 2).precommit(0, "A", 0, 1, 2);
    expect([scenario.said, scenario.proposed]).toEqual([[], []]);
    expect(scenario.committed).toEqual({ block: "A", round: 0 });
  });
});
