/**
 * From height to height, and blocks at the edge of their size: the scenarios of CometBFT 0.38.17's
 * consensus/state_test.go and invalid_test.go that state-machine.test.ts has no place for.
 */
import { describe, expect, it } from "@jest/globals";
import { msToNs } from "../../../chain/consensus/block-id.js";
import { encodeConsensusBlock, PART_BYTES } from "../../../chain/consensus/consensus-block.js";
import { encodeDuplicateVote } from "../../../chain/consensus/evidence.js";
import type { Hash32 } from "../../../chain/hex.js";
import { eachInSteps } from "../../../chain/steps/steps.js";
import { executeBlock } from "../../../node/blocks/block-validity.js";
import type { ChainTip } from "../../../node/blocks/chain-tip.js";
import { makeCommit } from "../../../node/consensus/machine/commit-votes.js";
import {
  type ConsensusParams,
  hashConsensusParams,
} from "../../../chain/consensus/consensus-params.js";
import { consensusParamsOf } from "../../../node/settings/genesis.js";
import type { DecidingVotes } from "../../../node/consensus/machine/consensus-state.js";
import { SignedChain } from "../../helpers/chains/signed-chain.js";
import { validatorGenesis } from "../../helpers/chains/validator-node.js";
import { orderedValidators, Scenario } from "./scenario.js";

const four = (own: number) => new Scenario({ validators: 4, own });

/** What the next height begins with. */
function decidingVotes({ state }: Scenario): DecidingVotes {
  const { commitRound: round } = state;
  return { round, precommits: state.votes.precommits(round) };
}

/** Validator 0 decides in round 1 by the last precommit of round 0: validator 1 said nil. */
function decidedAfterTimeout(): Scenario {
  const scenario = four(0).start().prevote(0, "own0", 1, 2, 3);
  scenario.precommit(0, "nil", 1).precommit(0, "own0", 2).timeout("precommitWait");
  expect(scenario.state.isPrecommitTimeoutSet).toBe(false);
  expect(scenario.place).toBe("1/1/propose");
  scenario.precommit(0, "own0", 3);
  expect(scenario.committed).toEqual({ block: "own0", round: 0 });
  return scenario;
}

describe("the height after a decision", () => {
  it("begins at round 0, without a timeout of the last one", () => {
    // StartNextHeightCorrectlyAfterTimeout, ResetTimeoutPrecommitUponNewHeight
    const lastCommit = decidingVotes(decidedAfterTimeout());
    const next = new Scenario({ validators: 4, own: 1, height: 2, lastCommit });
    expect([next.place, next.state.isPrecommitTimeoutSet]).toEqual(["2/0/newHeight", false]);
    expect([next.lock, next.valid]).toEqual(["-1:nil", "-1:nil"]);
    expect(next.start().timeouts).toEqual(["propose/0"]);
    next.timeout("propose");
    expect(next.said).toEqual(["prevote/0:nil"]);
  });

  it("has the next validator for its proposer (ProposerSelection0)", () => {
    const { set, addresses } = orderedValidators(4);
    expect(set.proposer.address).toBe(addresses[0]);
    expect(set.advance(1).proposer.address).toBe(addresses[1]);
  });

  it("takes late precommits into the last commit until its first round begins", () => {
    const scenario = four(0).start().prevote(0, "own0", 1, 2, 3).precommit(0, "own0", 1, 2);
    const lastCommit = decidingVotes(scenario);
    const next = new Scenario({ validators: 4, own: 0, height: 2, lastCommit });
    const present = () => {
      const votes = next.state.lastCommit;
      if (votes === undefined) throw new Error("no last commit");
      const { signatures } = makeCommit(1, votes, next.state.validators);
      return signatures.filter(({ flag }) => flag === 2).length;
    };
    expect(present()).toBe(3);
    next.late(1, "own0", 3);
    expect(present()).toBe(3);
    next.late(0, "own0", 3).late(0, "own0", 3);
    expect(present()).toBe(4);
    // A second vote is a conflict, however late it comes.
    next.late(0, "nil", 2);
    expect(next.conflicts).toHaveLength(1);
    next.start();
    const before = next.state;
    next.late(0, "nil", 1);
    expect(next.state).toBe(before);
    expect(next.conflicts).toHaveLength(1);
  });
});

describe("a block", () => {
  it.each<[string, readonly number[], readonly number[], string | undefined]>([
    ["more than two thirds want it", [1, 2], [], "own0"],
    ["more than two thirds want nil", [], [1, 2, 3], undefined],
    ["neither is so", [1], [2, 3], undefined],
  ])("is committed only when %s (FinalizeBlockCalled)", (_, forBlock, forNil, expected) => {
    const scenario = four(0).start().prevote(0, "own0", 1, 2, 3);
    scenario.precommit(0, "own0", ...forBlock).precommit(0, "nil", ...forNil);
    expect(scenario.committed?.block).toBe(expected);
    expect(scenario.state.isDecided).toBe(expected !== undefined);
  });

  it("of an earlier round is fetched and committed (CommitFromPreviousRound)", () => {
    const scenario = four(0).start().precommit(1, "nil", 1, 2, 3);
    expect(scenario.place).toBe("1/1/precommit");
    scenario.precommit(0, "A", 1, 2, 3);
    expect([scenario.place, scenario.state.commitRound]).toEqual(["1/1/commit", 0]);
    expect([scenario.state.proposalBlock, scenario.moments.at(-1)]).toEqual([
      undefined,
      "ValidBlock",
    ]);
    scenario.deliver("B");
    expect(scenario.committed).toBeUndefined();
    scenario.deliver("A");
    expect(scenario.committed).toEqual({ block: "A", round: 0 });
  });

  it("is decided past a validator that precommits what nobody knows (InvalidPrecommit)", () => {
    const scenario = four(0).start().precommit(0, "unknown", 3).prevote(0, "own0", 1, 2);
    scenario.precommit(0, "unknown2", 3).precommit(0, "own0", 1, 2);
    expect(scenario.committed).toEqual({ block: "own0", round: 0 });
    expect(scenario.halted).toBeUndefined();
  });
});

describe("the size of a block (StateOversizedBlock)", () => {
  const { genesis, seeds } = validatorGenesis(2);
  const hash = `0x${"07".repeat(32)}` as Hash32;
  const chain = new SignedChain(genesis, seeds, hash);

  /** A block with this much data, judged by a chain whose blocks have these bounds. */
  async function judge(dataBytes: number, params: ConsensusParams, isWithEvidence = false) {
    const tip: ChainTip = {
      chainId: genesis.cosmosChainId,
      params,
      height: 0,
      appVersion: 1,
      lastBlockId: undefined,
      timeNs: msToNs(genesis.genesisTimeMs),
      appHash: hash,
      lastResultsHash: chain.resultsHash,
      lastValidators: undefined,
      validators: chain.validators(1),
      nextValidators: chain.validators(2),
      seenCommit: undefined,
    };
    const accepted = new Error("valid, and now executed");
    const parts = {
      application: { execute: () => Promise.reject(accepted) },
      evidence: { checkSteps: () => eachInSteps([], () => undefined) },
    };
    const outcome = await executeBlock(
      parts,
      tip,
      blockOf(dataBytes, params, isWithEvidence),
    ).catch((error: unknown) => error);
    return outcome === accepted ? "valid" : outcome;
  }

  const evidence = () => {
    const decided = chain.decide(chain.makeBlock());
    const voted = new SignedChain(genesis, seeds, hash);
    voted.follow(decided, { appHash: hash });
    return voted.doubleVote(0, 1);
  };

  function blockOf(dataBytes: number, params: ConsensusParams, isWithEvidence: boolean) {
    return chain.makeBlock({
      transactions: [new Uint8Array(dataBytes).fill(111)],
      header: { consensusHash: hashConsensusParams(params) },
      evidence: isWithEvidence ? [evidence()] : [],
    });
  }

  const base = consensusParamsOf(genesis.params);

  it("may be the largest there is, and not a byte more", async () => {
    const bounds = { ...base, blockMaxBytes: PART_BYTES };
    const empty = encodeConsensusBlock(blockOf(PART_BYTES, bounds, false)).length - PART_BYTES;
    const most = PART_BYTES - empty;
    expect(encodeConsensusBlock(blockOf(most, bounds, false))).toHaveLength(PART_BYTES);
    expect(await judge(most, bounds)).toBe("valid");
    expect(String(await judge(most + 1, bounds))).toMatch(/the block's size is wrong/);
  });

  it("leaves evidence the room that it has, and not a byte more", async () => {
    const { length } = encodeDuplicateVote(evidence());
    expect(await judge(10, { ...base, evidenceMaxBytes: length }, true)).toBe("valid");
    const small = { ...base, evidenceMaxBytes: length - 1 };
    expect(String(await judge(10, small, true))).toMatch(/the evidence's size is wrong/);
  });
});
