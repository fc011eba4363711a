/** Votes and proposals: what is signed (canonical bytes), and how they travel. */
import { type Address, addressToBytes, bytesToAddress } from "../address.js";
import type { Height } from "../hex.js";
import { type BlockId, decodeBlockId, decodeTime, encodeBlockId, encodeTime } from "./block-id.js";
import { delimited, invalidMessage, ProtoReader, ProtoWriter } from "../protobuf/wire.js";

/** Which of the two voting steps a vote belongs to; the numbers are on the wire. */
export const VOTE_TYPE = { prevote: 1, precommit: 2 } as const;

/** One of `VOTE_TYPE`. */
export type VoteType = (typeof VOTE_TYPE)[keyof typeof VOTE_TYPE];

const PROPOSAL_TYPE = 32;

/** Length of an ed25519 signature, bytes. */
export const SIGNATURE_BYTES = 64;

/** What a validator says in one step of one round. */
export interface VoteContent {
  readonly type: VoteType;
  readonly height: Height;
  readonly round: number;
  /** Undefined votes for nil. */
  readonly blockId: BlockId | undefined;
  /** Nanoseconds since 1970. */
  readonly timeNs: bigint;
}

/** A signed vote. */
export interface Vote extends VoteContent {
  readonly validatorAddress: Address;
  /** Position in the validator set of the vote's height. */
  readonly validatorIndex: number;
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

/** What a proposer offers in one round. */
export interface ProposalContent {
  readonly height: Height;
  readonly round: number;
  /** Round in which the block had a polka, -1 for a fresh one. */
  readonly polRound: number;
  readonly blockId: BlockId;
  readonly timeNs: bigint;
}

/** A signed proposal. */
export interface Proposal extends ProposalContent {
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

/** Bytes that a validator signs for a vote (CanonicalVote with its length in front). */
export function voteSignBytes(chainId: string, vote: VoteContent): Buffer {
  const writer = new ProtoWriter()
    .integer(1, vote.type)
    .fixed64(2, vote.height)
    .fixed64(3, vote.round);
  if (vote.blockId !== undefined) writer.message(4, encodeBlockId(vote.blockId));
  return delimited(writer.message(5, encodeTime(vote.timeNs)).bytes(6, chainId).finish());
}

/** Bytes that a proposer signs (CanonicalProposal with its length in front). */
export function proposalSignBytes(chainId: string, proposal: ProposalContent): Buffer {
  return delimited(
    new ProtoWriter()
      .integer(1, PROPOSAL_TYPE)
      .fixed64(2, proposal.height)
      .fixed64(3, proposal.round)
      .integer(4, proposal.polRound)
      .message(5, encodeBlockId(proposal.blockId))
      .message(6, encodeTime(proposal.timeNs))
      .bytes(7, chainId)
      .finish(),
  );
}

/** `tendermint.types.Vote`. */
export function encodeVote(vote: Vote): Buffer {
  return new ProtoWriter()
    .integer(1, vote.type)
    .integer(2, vote.height)
    .integer(3, vote.round)
    .message(4, encodeBlockId(vote.blockId))
    .message(5, encodeTime(vote.timeNs))
    .bytes(6, addressToBytes(vote.validatorAddress))
    .integer(7, vote.validatorIndex)
    .bytes(8, vote.signature)
    .finish();
}

/** Untrusted bytes to a vote; its signature is not checked here. Throws INVALID_MESSAGE. */
export function decodeVote(bytes: Uint8Array): Vote {
  const reader = new ProtoReader(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
  const type = reader.count(1);
  if (type !== VOTE_TYPE.prevote && type !== VOTE_TYPE.precommit) {
    throw invalidMessage(`vote type ${type}`);
  }
  return {
    type,
    ...readPlace(reader),
    blockId: decodeBlockId(reader.bytes(4)),
    timeNs: decodeTime(reader.bytes(5)),
    validatorAddress: readAddress(reader, 6),
    validatorIndex: readInt32(reader, 7),
    signature: readSignature(reader, 8),
  };
}

/** `tendermint.types.Proposal`. */
export function encodeProposal(proposal: Proposal): Buffer {
  return new ProtoWriter()
    .integer(1, PROPOSAL_TYPE)
    .integer(2, proposal.height)
    .integer(3, proposal.round)
    .integer(4, proposal.polRound)
    .message(5, encodeBlockId(proposal.blockId))
    .message(6, encodeTime(proposal.timeNs))
    .bytes(7, proposal.signature)
    .finish();
}

/** Untrusted bytes to a proposal; its signature is not checked here. Throws INVALID_MESSAGE. */
export function decodeProposal(bytes: Uint8Array): Proposal {
  const reader = new ProtoReader(bytes, [1, 2, 3, 4, 5, 6, 7]);
  if (reader.count(1) !== PROPOSAL_TYPE) throw invalidMessage("not a proposal");
  const place = readPlace(reader);
  const polRound = Number(reader.int64(4));
  if (polRound < -1 || polRound >= place.round) throw invalidMessage("polka round");
  const blockId = decodeBlockId(reader.bytes(5));
  if (blockId === undefined) throw invalidMessage("a proposal of nil");
  return {
    ...place,
    polRound,
    blockId,
    timeNs: decodeTime(reader.bytes(6)),
    signature: readSignature(reader, 7),
  };
}

/** A field of 20 bytes. Throws INVALID_MESSAGE. */
export function readAddress(reader: ProtoReader, field: number): Address {
  const bytes = reader.bytes(field);
  if (bytes.length !== 20) throw invalidMessage(`field ${field} is not an address`);
  return bytesToAddress(bytes);
}

/** An int32 of at least zero. Throws INVALID_MESSAGE. */
export function readInt32(reader: ProtoReader, field: number): number {
  const value = reader.count(field);
  if (value > 0x7fff_ffff) throw invalidMessage(`field ${field} is out of range`);
  return value;
}

/** A field of 64 bytes. Throws INVALID_MESSAGE. */
export function readSignature(reader: ProtoReader, field: number): Uint8Array {
  const bytes = reader.bytes(field);
  if (bytes.length !== SIGNATURE_BYTES) throw invalidMessage("a signature is not 64 bytes");
  return bytes;
}

function readPlace(reader: ProtoReader): { height: Height; round: number } {
  const height = reader.count(2);
  if (height === 0) throw invalidMessage("height 0");
  return { height, round: readInt32(reader, 3) };
}
