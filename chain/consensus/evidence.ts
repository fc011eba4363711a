/** Proof that a validator signed two different votes in the same step. */
import { sha256Hex } from "../hashes.js";
import { bytesToHash32, type Hash32 } from "../hex.js";
import { blockIdSortKey, decodeTime, encodeTime } from "./block-id.js";
import { merkleRootOf } from "./merkle.js";
import { invalidMessage, ProtoReader, ProtoWriter } from "../protobuf/wire.js";
import { decodeVote, encodeVote, type Vote } from "./vote.js";

/** Two votes of one validator for one height, round and type that contradict each other. */
export interface DuplicateVoteEvidence {
  /** The one whose block id sorts first. */
  readonly voteA: Vote;
  readonly voteB: Vote;
  /** Power of the whole set at the height of the votes. */
  readonly totalPower: bigint;
  readonly validatorPower: bigint;
  /** Time of the block at the height of the votes. */
  readonly timeNs: bigint;
}

/** Puts two votes in the order in which evidence has them. */
export function orderVotes(one: Vote, other: Vote): readonly [voteA: Vote, voteB: Vote] {
  return isBefore(one, other) ? [one, other] : [other, one];
}

function isBefore(one: Vote, other: Vote): boolean {
  return blockIdSortKey(one.blockId) < blockIdSortKey(other.blockId);
}

/** `tendermint.types.DuplicateVoteEvidence`. */
export function encodeDuplicateVote(evidence: DuplicateVoteEvidence): Buffer {
  return new ProtoWriter()
    .message(1, encodeVote(evidence.voteA))
    .message(2, encodeVote(evidence.voteB))
    .integer(3, evidence.totalPower)
    .integer(4, evidence.validatorPower)
    .message(5, encodeTime(evidence.timeNs))
    .finish();
}

/** Untrusted bytes to evidence; votes and powers are not checked here. Throws INVALID_MESSAGE. */
export function decodeDuplicateVote(bytes: Uint8Array): DuplicateVoteEvidence {
  const reader = new ProtoReader(bytes, [1, 2, 3, 4, 5]);
  const voteA = decodeVote(reader.bytes(1));
  const voteB = decodeVote(reader.bytes(2));
  if (!isBefore(voteA, voteB)) throw invalidMessage("votes are out of order");
  return {
    voteA,
    voteB,
    totalPower: reader.int64(3),
    validatorPower: reader.int64(4),
    timeNs: decodeTime(reader.bytes(5)),
  };
}

/** Identity of a piece of evidence: SHA-256 of its bytes. */
export function hashEvidence(evidence: DuplicateVoteEvidence): Hash32 {
  return sha256Hex(encodeDuplicateVote(evidence));
}

/** `evidence_hash` of a block. */
export function hashEvidenceList(list: readonly DuplicateVoteEvidence[]): Hash32 {
  return bytesToHash32(merkleRootOf(list.map(encodeDuplicateVote)));
}
