/** The last commit of a new block: which of the known precommits go into it, and when they are enough. */
import {
  type Commit,
  COMMIT_FLAG,
  type CommitSignature,
  EMPTY_COMMIT,
} from "../../../chain/consensus/commit.js";
import { timeAfterNs } from "../../blocks/block-validity.js";
import type { ChainTip } from "../../blocks/chain-tip.js";
import { makeCommit } from "../machine/commit-votes.js";
import { ConsensusError } from "../consensus-error.js";
import type { ConsensusState, DecidingVotes } from "../machine/consensus-state.js";
import type { Candidate, HeightBlocks } from "./height-blocks.js";

/** A decided height: its validators, and the time of its block. */
type Decided = Pick<ChainTip, "height" | "timeNs" | "lastValidators">;

/**
 * All that are known, unless their median would take the chain's time back: then the block would be
 * nobody's, in every round. Votes for nil that are not later than the block are left out of such a
 * commit: who has not seen a block votes by a clock that may be behind. Honest votes for the block are
 * later than it, and `decisionOf` waits until they outweigh what liars have signed.
 * @param known precommits that decided the tip; undefined at height 0
 */
export function lastCommitFor(tip: Decided, known: DecidingVotes | undefined): Commit {
  const { height, lastValidators, timeNs } = tip;
  if (known === undefined || lastValidators === undefined) return EMPTY_COMMIT;
  const commit = makeCommit(height, known, lastValidators);
  if (timeAfterNs(tip, commit) > timeNs) return commit;
  const isBehind = (one: CommitSignature) => one.flag === COMMIT_FLAG.nil && one.timeNs <= timeNs;
  const signatures = commit.signatures.map((one): CommitSignature => {
    return isBehind(one) ? { flag: COMMIT_FLAG.absent } : one;
  });
  return { ...commit, signatures };
}

/** A decided block with the votes that decided it. */
export interface Decision {
  readonly candidate: Candidate;
  readonly votes: DecidingVotes;
}

/**
 * What a height comes to once two thirds want its block and the block is here; undefined while the votes
 * for it are such that no other could follow. Of barely two thirds the median can be the time of a liar
 * with less than a third, because CometBFT halves the power downwards; with one vote more it is not.
 * @throws CONSENSUS_FAILURE where the block was not executed here
 */
export function decisionOf(state: ConsensusState, blocks: HeightBlocks): Decision | undefined {
  const { height, validators, commitRound: round, proposalBlock } = state;
  const candidate = blocks.byId(proposalBlock?.id);
  if (candidate?.block === undefined || candidate.executed === undefined) {
    throw new ConsensusError("CONSENSUS_FAILURE", "the decided block is not here");
  }
  const { timeNs } = candidate.block.header;
  const votes = { round, precommits: state.votes.precommits(round) };
  const decided = { height, timeNs, lastValidators: validators };
  const isFollowed = timeAfterNs(decided, lastCommitFor(decided, votes)) > timeNs;
  return isFollowed ? { candidate, votes } : undefined;
}
