/** Between precommits and commits. */
import {
  type Commit,
  COMMIT_FLAG,
  type CommitSignature,
  voteOfCommit,
} from "../../../chain/consensus/commit.js";
import type { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import type { Height } from "../../../chain/hex.js";
import type { DecidingVotes } from "./consensus-state.js";
import { VoteSet } from "./vote-set.js";

/** The commit that a decided round's precommits make; votes for other blocks count as absent. */
export function makeCommit(
  height: Height,
  { round, precommits }: DecidingVotes,
  validators: ValidatorSet,
): Commit {
  const blockId = precommits.majority?.blockId;
  if (blockId === undefined) throw new RangeError("a commit needs two thirds for a block");
  const signatures = validators.validators.map((_, index): CommitSignature => {
    const forBlock = precommits.voteFor(index, blockId);
    const vote = forBlock ?? precommits.voteFor(index, undefined);
    if (vote === undefined) return { flag: COMMIT_FLAG.absent };
    const flag = forBlock === undefined ? COMMIT_FLAG.nil : COMMIT_FLAG.commit;
    const { validatorAddress, timeNs, signature } = vote;
    return { flag, validatorAddress, timeNs, signature };
  });
  return { height, round, blockId, signatures };
}

/** A verified commit as the votes it was made of: what the next height starts with. */
export function decidingVotesOf(commit: Commit, validators: ValidatorSet): DecidingVotes {
  let precommits = VoteSet.empty(validators);
  for (const index of commit.signatures.keys()) {
    const vote = voteOfCommit(commit, index);
    if (vote !== undefined) precommits = precommits.add(vote).set;
  }
  return { round: commit.round, precommits };
}
