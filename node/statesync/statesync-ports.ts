/**
 * What the parts of state sync hand to each other: what the light client proved of a height, what
 * peers offer, and one peer that is asked for a snapshot.
 */
import type { BlockId } from "../../chain/consensus/block-id.js";
import type { Commit } from "../../chain/consensus/commit.js";
import type { ConsensusHeader } from "../../chain/consensus/consensus-header.js";
import type { DuplicateVoteEvidence } from "../../chain/consensus/evidence.js";
import type { ValidatorSet } from "../../chain/consensus/validator-set.js";
import type { Hash32, Height } from "../../chain/hex.js";

/** What is proven of a height S with a snapshot; all of it is verified. */
export interface ProvenHeight {
  /** Header of S. */
  readonly header: ConsensusHeader;
  readonly blockId: BlockId;
  /** The commit in block S, which is of S - 1. */
  readonly lastCommit: Commit;
  /** Evidence in block S. */
  readonly evidence: readonly DuplicateVoteEvidence[];
  /** The commit of S itself. */
  readonly commit: Commit;
  /** Header of S + 1: its `app_hash` is the EVM hash of S. */
  readonly next: ConsensusHeader;
  /** Validators of S, S + 1 and S + 2, with the priorities of their heights. */
  readonly validators: ValidatorSet;
  readonly nextValidators: ValidatorSet;
  readonly afterNextValidators: ValidatorSet;
}

/** The same with what was before: everything that a state is restored by. */
export interface TrustedState extends ProvenHeight {
  readonly backfill: Backfill;
}

/** Headers before S, for the evidence of double signing and for BLOCKHASH. */
export interface Backfill {
  /** Descending from S - 1, without a gap; each hashes to the `lastBlockId` of the one above. */
  readonly headers: readonly ConsensusHeader[];
  /**
   * Validators where they differ from those of the height above, descending: `validators` signed
   * from `height` downwards until the next entry. The first one is of S - 1. Powers and order are
   * proven by `validatorsHash`; the priorities of past heights are nobody's concern.
   */
  readonly sets: readonly { readonly height: Height; readonly validators: ValidatorSet }[];
  /** Evidence in the blocks of these headers: no block may hold it again. */
  readonly evidence: readonly DuplicateVoteEvidence[];
}

/** A snapshot that a peer says it has. */
export interface SnapshotOffer {
  readonly height: Height;
  readonly format: number;
  /** Number of chunks. */
  readonly chunks: number;
  /** SHA-256 of the manifest. */
  readonly id: Hash32;
}

/** One peer, asked for snapshots. All methods throw PEER_PROTOCOL, PEER_GONE or the signal's reason. */
export interface SnapshotSource {
  /** The peer's newest snapshots; at most 10. */
  list(signal: AbortSignal): Promise<readonly SnapshotOffer[]>;
  /** Bytes of the manifest, bounded, not verified; undefined when the peer has it no more. */
  manifest(offer: SnapshotOffer, signal: AbortSignal): Promise<Uint8Array | undefined>;
  /** Bytes of one chunk, bounded, not verified; undefined when the peer has it no more. */
  chunk(offer: SnapshotOffer, index: number, signal: AbortSignal): Promise<Uint8Array | undefined>;
}
