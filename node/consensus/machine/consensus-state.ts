/** What one height's consensus knows, what can happen to it, and what it asks for. */
import type { Address } from "../../../chain/address.js";
import type { BlockId, PartSetHeader } from "../../../chain/consensus/block-id.js";
import type { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import type { Proposal, Vote, VoteType } from "../../../chain/consensus/vote.js";
import type { Height } from "../../../chain/hex.js";
import { HeightVotes } from "./height-votes.js";
import type { VoteSet } from "./vote-set.js";

/** Steps of a round in their order; the numbers are CometBFT's. */
export const STEP = {
  newHeight: 1,
  newRound: 2,
  propose: 3,
  prevote: 4,
  prevoteWait: 5,
  precommit: 6,
  precommitWait: 7,
  commit: 8,
} as const;

/** One of `STEP`. */
export type Step = (typeof STEP)[keyof typeof STEP];

/** Steps that a timeout can belong to. */
export type TimeoutStep =
  | typeof STEP.newHeight
  | typeof STEP.propose
  | typeof STEP.prevoteWait
  | typeof STEP.precommitWait;

/** A block whose parts are all there and that was executed. */
export interface KnownBlock {
  readonly id: BlockId;
  /** False when the block breaks a rule of the chain: it gets no vote. */
  readonly isValid: boolean;
}

/** Everything that one height's consensus knows. Immutable. */
export interface ConsensusState {
  readonly height: Height;
  readonly round: number;
  readonly step: Step;
  /** Validators of the height, the proposer that of the present round. */
  readonly validators: ValidatorSet;
  /** This node's validator; undefined for one that only follows. */
  readonly own: Address | undefined;
  readonly proposal: Proposal | undefined;
  /** The block that this round is about, once it is complete. */
  readonly proposalBlock: KnownBlock | undefined;
  /** Parts that are being collected. */
  readonly wantedParts: PartSetHeader | undefined;
  /** -1 without a lock. */
  readonly lockedRound: number;
  readonly lockedBlock: BlockId | undefined;
  /** Last round with a polka for a block that is known, -1 without. */
  readonly validRound: number;
  readonly validBlock: BlockId | undefined;
  readonly votes: HeightVotes;
  /** Round whose precommits decided, -1 before. */
  readonly commitRound: number;
  readonly isPrecommitTimeoutSet: boolean;
  /** Set with the `commit` effect: what comes now can only add precommits. */
  readonly isDecided: boolean;
  /** Precommits that decided the height before: stragglers count until the first round begins. */
  readonly lastCommit: DecidingVotes | undefined;
}

/** Precommits of the round that decided a height. */
export interface DecidingVotes {
  readonly round: number;
  readonly precommits: VoteSet;
}

/** What can happen. Votes and proposals have had their signatures checked against the set. */
export type Input =
  | { readonly type: "timeout"; readonly step: TimeoutStep; readonly round: number }
  | { readonly type: "proposal"; readonly proposal: Proposal }
  | { readonly type: "block"; readonly block: KnownBlock }
  | { readonly type: "vote"; readonly vote: Vote };

/** Moments that others are told of; the names are those of CometBFT's events. */
export type MomentName =
  | "NewRound"
  | "NewRoundStep"
  | "CompleteProposal"
  | "Polka"
  | "Lock"
  | "Relock"
  | "Unlock"
  | "ValidBlock"
  | "TimeoutPropose"
  | "TimeoutWait";

/** What the driver is to do, in order. */
export type Effect =
  /** Make and sign a proposal: of the valid block where there is one, else of a new block. */
  | {
      readonly type: "propose";
      readonly round: number;
      readonly validBlock: BlockId | undefined;
      readonly polRound: number;
    }
  | {
      readonly type: "vote";
      readonly voteType: VoteType;
      readonly round: number;
      readonly blockId: BlockId | undefined;
    }
  | { readonly type: "schedule"; readonly step: TimeoutStep; readonly round: number }
  /** Two thirds stand behind a block that is not here: get its parts. */
  | { readonly type: "fetch"; readonly parts: PartSetHeader }
  | { readonly type: "commit"; readonly blockId: BlockId; readonly round: number }
  | { readonly type: "conflict"; readonly first: Vote; readonly second: Vote }
  | {
      readonly type: "moment";
      readonly name: MomentName;
      readonly round: number;
      readonly step: Step;
    }
  /** More than two thirds stand behind an invalid block: nothing may go on here. */
  | { readonly type: "halt"; readonly reason: string };

/** A height's beginning. */
export interface HeightStart {
  readonly height: Height;
  readonly validators: ValidatorSet;
  readonly own: Address | undefined;
  readonly lastCommit: DecidingVotes | undefined;
}

/** State before round 0; the driver's `newHeight` timeout begins it. */
export function startHeight(start: HeightStart): ConsensusState {
  return {
    ...start,
    round: 0,
    step: STEP.newHeight,
    proposal: undefined,
    proposalBlock: undefined,
    wantedParts: undefined,
    lockedRound: -1,
    lockedBlock: undefined,
    validRound: -1,
    validBlock: undefined,
    votes: HeightVotes.empty(start.validators),
    commitRound: -1,
    isPrecommitTimeoutSet: false,
    isDecided: false,
  };
}

/** Whether the block that the round is about is here, with the prevotes that it points to. */
export function isProposalComplete(state: ConsensusState): boolean {
  const { proposal, proposalBlock } = state;
  if (proposal === undefined || proposalBlock === undefined) return false;
  if (proposal.polRound < 0) return true;
  return state.votes.prevotes(proposal.polRound).majority !== undefined;
}
