/** A height in progress about which nothing is known but its validators. */
import type { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import type { Vote } from "../../../chain/consensus/vote.js";
import type { HeightProgress, VoteList } from "../../../node/consensus/consensus-ports.js";
import { STEP } from "../../../node/consensus/machine/consensus-state.js";

/** Votes by place; the others did not vote. */
export function voteList(set: ValidatorSet, votes: readonly Vote[]): VoteList {
  return set.validators.map((_, index) => votes.find((vote) => vote.validatorIndex === index));
}

/** The height before anything happened, with changes. */
export function emptyProgress(
  height: number,
  validators: ValidatorSet,
  change: Partial<HeightProgress> = {},
): HeightProgress {
  const none = voteList(validators, []);
  return {
    height,
    round: 0,
    step: STEP.newHeight,
    startTimeMs: 0,
    commitTimeMs: undefined,
    validators,
    proposal: undefined,
    proposalBlock: undefined,
    lockedRound: -1,
    lockedBlock: undefined,
    validRound: -1,
    validBlock: undefined,
    votes: [{ round: 0, prevotes: none, precommits: none }],
    commitRound: -1,
    lastCommit: undefined,
    lastValidators: undefined,
    isPrecommitTimeoutSet: false,
    ...change,
  };
}
