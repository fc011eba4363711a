/** The height in progress as servers show it. Pure. */
import { type BlockId, nsToMs } from "../../../chain/consensus/block-id.js";
import type { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import type { ChainTip } from "../../blocks/chain-tip.js";
import type { HeightProgress, ProgressBlock, VoteList } from "../consensus-ports.js";
import { type Candidate, HeightBlocks } from "../proposals/height-blocks.js";
import { decidingVotesOf } from "./commit-votes.js";
import { type ConsensusState, startHeight } from "./consensus-state.js";
import type { VoteSet } from "./vote-set.js";

/** Clock times of a height; see `HeightProgress`. */
export type HeightTimes = Pick<HeightProgress, "startTimeMs" | "commitTimeMs">;

/** What consensus knows of its height. */
export function heightProgress(
  state: ConsensusState,
  blocks: HeightBlocks,
  tip: ChainTip,
  times: HeightTimes,
): HeightProgress {
  const { validators, lastCommit, votes, round } = state;
  const blockOf = (id: BlockId | undefined) => progressBlock(blocks.byId(id));
  const rounds = Array.from({ length: round + 1 }, (_, one) => ({
    round: one,
    prevotes: listOf(votes.prevotes(one), validators),
    precommits: listOf(votes.precommits(one), validators),
  }));
  return {
    ...times,
    height: state.height,
    round,
    step: state.step,
    validators,
    proposal: state.proposal,
    proposalBlock: blockOf(state.proposalBlock?.id) ?? collectedBlock(state, blocks),
    lockedRound: state.lockedRound,
    lockedBlock: blockOf(state.lockedBlock),
    validRound: state.validRound,
    validBlock: blockOf(state.validBlock),
    votes: rounds,
    commitRound: state.commitRound,
    lastCommit:
      lastCommit === undefined || tip.lastValidators === undefined
        ? undefined
        : listOf(lastCommit.precommits, tip.lastValidators),
    lastValidators: tip.lastValidators,
    isPrecommitTimeoutSet: state.isPrecommitTimeoutSet,
  };
}

/** The height after the tip, of a node that does not take part. */
export function idleProgress(tip: ChainTip): HeightProgress {
  const { seenCommit, lastValidators, validators } = tip;
  const lastCommit =
    seenCommit === undefined || lastValidators === undefined
      ? undefined
      : decidingVotesOf(seenCommit, lastValidators);
  const state = startHeight({ height: tip.height + 1, validators, own: undefined, lastCommit });
  const startTimeMs = nsToMs(tip.timeNs);
  return heightProgress(state, new HeightBlocks(), tip, { startTimeMs, commitTimeMs: undefined });
}

function listOf(set: VoteSet, { validators }: ValidatorSet): VoteList {
  return validators.map((_, index) => set.firstOf(index));
}

function progressBlock(candidate: Candidate | undefined): ProgressBlock | undefined {
  if (candidate === undefined) return undefined;
  const { id, block, parts } = candidate;
  return { id, block, parts: parts.map(() => true) };
}

/** The proposal's block while its parts come in. */
function collectedBlock(
  { proposal }: ConsensusState,
  { collecting }: HeightBlocks,
): ProgressBlock | undefined {
  if (proposal === undefined || collecting === undefined) return undefined;
  return { id: proposal.blockId, block: undefined, parts: collecting.have() };
}
