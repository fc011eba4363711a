/**
 * Where consensus meets the network and the servers: the driver implements `ConsensusInbox`,
 * `BlockArchive` and `ConsensusView`, the network implements `ConsensusBroadcast`. Everything that
 * comes in is unverified until the driver has looked at it.
 */
import type { BlockId, PartSetHeader } from "../../chain/consensus/block-id.js";
import type { Commit } from "../../chain/consensus/commit.js";
import type { BlockPart, ConsensusBlock } from "../../chain/consensus/consensus-block.js";
import type { ConsensusHeader } from "../../chain/consensus/consensus-header.js";
import type { ConsensusParams } from "../../chain/consensus/consensus-params.js";
import type { DuplicateVoteEvidence } from "../../chain/consensus/evidence.js";
import type { ValidatorSet } from "../../chain/consensus/validator-set.js";
import type { Proposal, Vote } from "../../chain/consensus/vote.js";
import type { Height } from "../../chain/hex.js";
import type { Steps } from "../../chain/steps/steps.js";
import type { DecidedReport } from "../blocks/decision.js";
import type { MomentName, Step } from "./machine/consensus-state.js";
import type { CommittedEvidence } from "../store/consensus-store.js";

/** A block that broke a rule: this node refused it. */
export interface RefusedBlock {
  readonly block: ConsensusBlock;
  /** Which rule, in words. */
  readonly reason: string;
}

/** What a node has of a round, so that a peer can send what is missing. */
export interface RoundStatus {
  readonly height: Height;
  readonly round: number;
  readonly step: Step;
  readonly hasProposal: boolean;
  /** Parts that are being collected, and which of them are here. */
  readonly parts: { readonly header: PartSetHeader; readonly have: readonly boolean[] } | undefined;
  /** By validator index: whose votes of the round are here. */
  readonly prevotes: readonly boolean[];
  readonly precommits: readonly boolean[];
  /** Votes of earlier rounds of the height that a proposal or a decision may rest on. */
  readonly earlier: readonly {
    readonly round: number;
    readonly prevotes: readonly boolean[];
    readonly precommits: readonly boolean[];
  }[];
}

/** What travels between validators about the height that is being decided. */
export type ConsensusMessage =
  | { readonly type: "proposal"; readonly proposal: Proposal }
  | {
      readonly type: "part";
      readonly height: Height;
      readonly round: number;
      readonly header: PartSetHeader;
      readonly part: BlockPart;
    }
  | { readonly type: "vote"; readonly vote: Vote }
  | { readonly type: "evidence"; readonly evidence: DuplicateVoteEvidence }
  | { readonly type: "status"; readonly status: RoundStatus };

/**
 * What the driver made of a message: "new" is worth relaying, "known" and "useless" (another
 * height or round) are not, "invalid" is the sender's fault and counts against it.
 */
export type Reception = "new" | "known" | "useless" | "invalid";

/** The network as the driver sees it; never blocks, never throws. */
export interface ConsensusBroadcast {
  broadcast(message: ConsensusMessage): void;
}

/** The driver as the network sees it. */
export interface ConsensusInbox {
  /**
   * Takes a message of a peer.
   * @param onInvalid told how long the thread judged a message that turned out invalid: before the
   * answer or, where the message came early and was kept, some time after it
   */
  receive(
    message: ConsensusMessage,
    peer: string,
    onInvalid?: (spentMs: number) => void,
  ): Promise<Reception>;
  /** The peer is banned: what it has said and nobody has looked at yet is dropped. */
  forget(peer: string): void;
  status(): RoundStatus;
  /** Size of the validator set of a height; undefined where it is not known here. */
  setSizeAt(height: Height): number | undefined;
  /** What a peer at that place lacks and this node has; at most a bounded number of messages. */
  repair(peer: RoundStatus): readonly ConsensusMessage[];
}

/** A decided block with the precommits that decided it. */
export interface DecidedBlock {
  readonly block: ConsensusBlock;
  readonly commit: Commit;
}

/**
 * A block as it came from a peer. Its bytes are not read before the commit proves them: whoever makes
 * them up could make reading take seconds.
 */
export interface UnreadBlock {
  /** `tendermint.types.Block` of some version, or anything else. */
  readonly blockBytes: Uint8Array;
  readonly commit: Commit;
}

/** What is given as a decided block. */
export type ReceivedBlock = DecidedBlock | UnreadBlock;

/** The height that a received block is said to be of. */
export function heightOfReceived(received: ReceivedBlock): Height {
  return "block" in received ? received.block.header.height : received.commit.height;
}

/** A decided block without its transactions. */
export interface DecidedOutline {
  readonly header: ConsensusHeader;
  readonly blockId: BlockId;
  readonly evidence: readonly DuplicateVoteEvidence[];
  readonly lastCommit: Commit;
  /** The precommits that decided it, as far as this node knows. */
  readonly commit: Commit;
}

/** Decided blocks, for peers that are behind. */
export interface BlockArchive {
  /** Height of the newest decided and stored block; 0 before the first. */
  height(): Height;
  /** Oldest height that `load` still has. */
  base(): Height;
  load(height: Height): DecidedBlock | undefined;
  /** The same in steps: of a full block it takes a quarter of a second. */
  loadSteps(height: Height): Steps<DecidedBlock | undefined>;
}

/** Takes decided blocks in order, while consensus is not running. */
export interface BlockSyncTarget extends BlockArchive, HeightWitness {
  /**
   * Verifies the commit against the validators of the height, executes and stores the block.
   * @throws BLOCK_INVALID when the commit does not prove the block: the sender's fault;
   * DECIDED_BLOCK_REFUSED when it does and this node cannot read or take the block: the own fault
   */
  apply(received: ReceivedBlock): Promise<void>;
}

/** Tells a claim about the network's height from a proof. */
export interface HeightWitness {
  /** Whether a peer's commit shows that the network has come to the commit's height. */
  isProof(commit: Commit): boolean;
}

/** How taking part ended: because it was told to, or for good because an invariant broke. */
export type ConsensusEnd = "stopped" | "halted";

/** One moment of the height in progress, for subscribers and metrics. */
export interface ConsensusMoment {
  readonly name: MomentName;
  /** The block that the proposal of the round names; undefined while there is none. */
  readonly blockId?: BlockId | undefined;
  readonly height: Height;
  readonly round: number;
  readonly step: Step;
}

/** What consensus did, for metrics. */
export type ConsensusReport =
  | DecidedReport
  | { readonly type: "proposal"; readonly isAccepted: boolean }
  | { readonly type: "late vote"; readonly voteType: Vote["type"] }
  | {
      readonly type: "timing";
      /** The method of ABCI that does the same. */
      readonly method: "prepare_proposal" | "process_proposal" | "commit";
      readonly durationMs: number;
    };

/** Votes of one type in one round, by the validator's place in the set. */
export type VoteList = readonly (Vote | undefined)[];

/** A block of the height in progress. */
export interface ProgressBlock {
  readonly id: BlockId;
  /** Undefined while parts are missing, and where the bytes are no block. */
  readonly block: ConsensusBlock | undefined;
  /** Which parts are here. */
  readonly parts: readonly boolean[];
}

/** Everything that is known of the height in progress (CometBFT's RoundState). */
export interface HeightProgress {
  readonly height: Height;
  readonly round: number;
  readonly step: Step;
  /** When round 0 began or is to begin, Unix milliseconds. */
  readonly startTimeMs: number;
  /** When this process last saw a height decided; undefined before. */
  readonly commitTimeMs: number | undefined;
  /** Validators of the height; the proposer is that of the round. */
  readonly validators: ValidatorSet;
  readonly proposal: Proposal | undefined;
  /** What the round is about; its parts may still be on their way. */
  readonly proposalBlock: ProgressBlock | undefined;
  /** -1 without a lock. */
  readonly lockedRound: number;
  readonly lockedBlock: ProgressBlock | undefined;
  /** Last round with a polka for a block that is known, -1 without. */
  readonly validRound: number;
  readonly validBlock: ProgressBlock | undefined;
  /** From round 0 to the present one. */
  readonly votes: readonly {
    readonly round: number;
    readonly prevotes: VoteList;
    readonly precommits: VoteList;
  }[];
  /** Round whose precommits decided, -1 before. */
  readonly commitRound: number;
  /** Precommits that decided the height before; undefined at height 1. */
  readonly lastCommit: VoteList | undefined;
  readonly lastValidators: ValidatorSet | undefined;
  readonly isPrecommitTimeoutSet: boolean;
}

/** What the servers may read of consensus; heights from 1 to the newest stored block. */
export interface ConsensusView extends BlockArchive {
  /** What `load` gives, without reading the transactions. */
  outline(height: Height): DecidedOutline | undefined;
  /** Evidence of all blocks that this node has had, pruned ones too, in no order. */
  committedEvidence(): AsyncIterable<CommittedEvidence>;
  /** Validators of a height; known up to the newest height + 2. */
  validators(height: Height): ValidatorSet | undefined;
  params(height: Height): ConsensusParams;
  /**
   * Version of the rules by which the block of a height is made, `version.app` of its header: of
   * heights that are kept, and of the next one, for which the state after the newest tells it.
   */
  appVersion(height: Height): number | undefined;
  /** The height in progress, for `consensus_state`. */
  progress(): HeightProgress;
  /** Whether this node is catching up with the network. */
  isCatchingUp(): boolean;
}
