/** What a node has of a round, and what it can give to a peer that has less. Pure. */
import {
  type BlockId,
  blockIdKey,
  isSameParts,
  type PartSetHeader,
} from "../../../chain/consensus/block-id.js";
import { type Commit, voteOfCommit } from "../../../chain/consensus/commit.js";
import type { BlockPart } from "../../../chain/consensus/consensus-block.js";
import { type Vote, VOTE_TYPE, type VoteType } from "../../../chain/consensus/vote.js";
import type { Height } from "../../../chain/hex.js";
import type { ConsensusMessage, RoundStatus } from "../consensus-ports.js";
import { type ConsensusState, STEP } from "./consensus-state.js";
import type { HeightBlocks } from "../proposals/height-blocks.js";
import type { VoteSet } from "./vote-set.js";

/**
 * Rounds beside the present one whose votes are told of: the newest, those that nobody honest has left this
 * one for last, because a few liars could fill all places with rounds to come.
 */
export const MAX_OTHER_ROUNDS = 8;
/**
 * Votes in one answer: those of one type of the largest set with stake. Of votes that are sent once more
 * nobody knows which one the peer needs: all of them have to go.
 */
const MAX_VOTES = 500;
/** Parts in one answer: one mebibyte. */
const MAX_PARTS = 16;

/** What this node has of the height in progress. */
export function roundStatus(state: ConsensusState, blocks: HeightBlocks): RoundStatus {
  const { height, round, step, votes, proposal, proposalBlock } = state;
  const { collecting } = blocks;
  const others = votes.knownRounds().filter((one) => one !== round);
  const isToCome = (one: number) => one > round + 1;
  const byWeight = [...others.filter(isToCome), ...others.filter((one) => !isToCome(one))];
  return {
    height,
    round,
    step,
    hasProposal: proposal !== undefined,
    parts:
      collecting === undefined
        ? undefined
        : {
            header: collecting.header,
            have:
              proposalBlock === undefined ? collecting.have() : collecting.have().map(() => true),
          },
    prevotes: havesOf(state, votes.prevotes(round)),
    precommits: havesOf(state, votes.precommits(round)),
    earlier: byWeight.slice(-MAX_OTHER_ROUNDS).map((one) => ({
      round: one,
      prevotes: havesOf(state, votes.prevotes(one)),
      precommits: havesOf(state, votes.precommits(one)),
    })),
  };
}

/** Status of a node that waits for its first height. */
export function idleStatus(height: Height): RoundStatus {
  return {
    height,
    round: 0,
    step: STEP.newHeight,
    hasProposal: false,
    parts: undefined,
    prevotes: [],
    precommits: [],
    earlier: [],
  };
}

function havesOf({ validators }: ConsensusState, set: VoteSet): boolean[] {
  return validators.validators.map((_, index) => set.firstOf(index) !== undefined);
}

/** What a peer at the same height lacks. */
export function repairSameHeight(
  state: ConsensusState,
  blocks: HeightBlocks,
  peer: RoundStatus,
): ConsensusMessage[] {
  const messages: ConsensusMessage[] = [];
  const { proposal, round } = state;
  if (peer.round === round && !peer.hasProposal && proposal !== undefined) {
    messages.push({ type: "proposal", proposal });
    messages.push(...missingParts(state, blocks, emptyParts(proposal.blockId)));
  } else if (peer.parts !== undefined) {
    messages.push(...missingParts(state, blocks, peer.parts));
  }
  messages.push(...missingVotes(state, peer).slice(0, MAX_VOTES));
  return messages;
}

/** What a peer needs to decide a height that is decided here. */
export function repairDecided(
  commit: Commit,
  decided: { readonly header: PartSetHeader; readonly parts: readonly BlockPart[] },
  peer: RoundStatus,
): ConsensusMessage[] {
  const messages: ConsensusMessage[] = [];
  const isCollecting = isSameParts(peer.parts?.header, decided.header);
  const lacksParts = isCollecting && peer.parts?.have.includes(false) === true;
  const has = votesOfPeer(peer, commit.round)?.precommits;
  const votes = [...commit.signatures.keys()].flatMap((index): Vote[] => {
    const vote = voteOfCommit(commit, index);
    return vote?.blockId === undefined ? [] : [vote];
  });
  const missing = votes.filter(({ validatorIndex }) => has?.[validatorIndex] !== true);
  // One that has votes of all and did not decide was told something else by a liar.
  const needed = missing.length > 0 || lacksParts ? missing : votes;
  for (const vote of needed.slice(0, MAX_VOTES)) messages.push({ type: "vote", vote });
  const { height, round } = commit;
  // The votes make it collect these parts, so they follow at once.
  if (peer.parts === undefined || isCollecting) {
    const { header, parts } = decided;
    const absent = parts.filter(({ index }) => peer.parts?.have[index] !== true);
    for (const part of absent.slice(0, MAX_PARTS)) {
      messages.push({ type: "part", height, round, header, part });
    }
  }
  return messages;
}

function emptyParts({ parts }: BlockId): NonNullable<RoundStatus["parts"]> {
  return { header: parts, have: [] };
}

function missingParts(
  state: ConsensusState,
  blocks: HeightBlocks,
  { header, have }: NonNullable<RoundStatus["parts"]>,
): ConsensusMessage[] {
  const { collecting } = blocks;
  const isCollecting = isSameParts(collecting?.header, header);
  const parts = blocks.byParts(header)?.parts ?? (isCollecting ? collecting?.all() : undefined);
  const { height, round } = state;
  return (parts ?? [])
    .filter(({ index }) => have[index] !== true)
    .slice(0, MAX_PARTS)
    .map((part) => ({ type: "part", height, round, header, part }));
}

/** Votes of the peer's round, of the rounds it may need to follow, and of the proposal's polka. */
function missingVotes(state: ConsensusState, peer: RoundStatus): ConsensusMessage[] {
  const { round, votes, proposal, validRound, commitRound } = state;
  const messages: ConsensusMessage[] = [];
  const rounds = new Set([peer.round, round, proposal?.polRound, validRound, commitRound]);
  const wanted = [...rounds].filter((one) => one !== undefined).filter((one) => one >= 0);
  for (const one of wanted) {
    const known = votesOfPeer(peer, one);
    const types: readonly (readonly [VoteType, readonly boolean[] | undefined])[] = [
      [VOTE_TYPE.precommit, known?.precommits],
      [VOTE_TYPE.prevote, known?.prevotes],
    ];
    for (const [type, has] of types) {
      const best = [...bestVotes(votes.of(type, one))];
      const missing = best.filter(({ validatorIndex }) => has?.[validatorIndex] !== true);
      const isStuck =
        (one === peer.round && isBehind(peer, type, votes.of(type, one))) ||
        (type === VOTE_TYPE.prevote && one === proposal?.polRound && lacksPolka(state, peer));
      // As above: it has other votes of a liar than those that make the majority.
      const needed = missing.length === 0 && isStuck ? best : missing;
      for (const vote of needed) messages.push({ type: "vote", vote });
    }
  }
  return messages;
}

/** Whether these votes would have moved the peer on, had it all of them. */
function isBehind({ step }: RoundStatus, type: VoteType, set: VoteSet): boolean {
  const reached = type === VOTE_TYPE.prevote ? STEP.precommit : STEP.commit;
  return set.majority !== undefined && step < reached;
}

/**
 * Whether the peer has the proposal of the round with its whole block and does not go on: what it lacks
 * is the two thirds that the proposal points to, which alone would lift another lock.
 */
function lacksPolka({ round }: ConsensusState, peer: RoundStatus): boolean {
  const isWaiting = peer.round === round && peer.hasProposal && peer.step <= STEP.propose;
  return isWaiting && peer.parts?.have.every((has) => has) === true;
}

/** One vote of each validator: the one for the majority, where there is one. */
function bestVotes(set: VoteSet): Iterable<Vote> {
  const { majority } = set;
  const best = new Map<number, Vote>();
  for (const vote of set.votes()) {
    const isForMajority =
      majority !== undefined && blockIdKey(vote.blockId) === blockIdKey(majority.blockId);
    if (isForMajority || !best.has(vote.validatorIndex)) best.set(vote.validatorIndex, vote);
  }
  return best.values();
}

function votesOfPeer(
  peer: RoundStatus,
  round: number,
): Pick<RoundStatus, "prevotes" | "precommits"> | undefined {
  return peer.round === round ? peer : peer.earlier.find((one) => one.round === round);
}
