/** The signatures that decided a block. */
import { type Address, addressToBytes } from "../address.js";
import { bytesToHash32, type Hash32, type Height } from "../hex.js";
import { allAtOnce, mapInSteps, type Steps } from "../steps/steps.js";
import {
  type BlockId,
  decodeBlockId,
  decodeTime,
  encodeBlockId,
  encodeTime,
  ZERO_TIME_NS,
} from "./block-id.js";
import { merkleRootOf } from "./merkle.js";
import { invalidMessage, ProtoReader, ProtoWriter } from "../protobuf/wire.js";
import { readAddress, readInt32, readSignature, type Vote, VOTE_TYPE } from "./vote.js";

/** What one validator did about a decided block; the numbers of `kind` are on the wire. */
export const COMMIT_FLAG = { absent: 1, commit: 2, nil: 3 } as const;

/** One validator's part of a commit, in the order of the validator set. */
export type CommitSignature =
  | { readonly flag: typeof COMMIT_FLAG.absent }
  | {
      readonly flag: typeof COMMIT_FLAG.commit | typeof COMMIT_FLAG.nil;
      readonly validatorAddress: Address;
      readonly timeNs: bigint;
      /** 64 bytes. */
      readonly signature: Uint8Array;
    };

/** Precommits of one round for one block. */
export interface Commit {
  readonly height: Height;
  readonly round: number;
  /** Undefined only for the empty commit in block 1. */
  readonly blockId: BlockId | undefined;
  /** One entry for each validator of the height's set; empty only in block 1. */
  readonly signatures: readonly CommitSignature[];
}

/** The commit that block 1 carries. */
export const EMPTY_COMMIT: Commit = { height: 0, round: 0, blockId: undefined, signatures: [] };

/** More validators than any set has; a bound for bytes from outside. */
export const MAX_VALIDATORS = 10_000;

/** `last_commit_hash`: Merkle root over the signatures. */
export function hashCommit(commit: Commit): Hash32 {
  return bytesToHash32(merkleRootOf(commit.signatures.map(encodeCommitSignature)));
}

/** The precommit behind an entry; undefined for an absent one. */
export function voteOfCommit(commit: Commit, validatorIndex: number): Vote | undefined {
  const entry = commit.signatures[validatorIndex];
  if (entry === undefined || entry.flag === COMMIT_FLAG.absent) return undefined;
  const { validatorAddress, timeNs, signature } = entry;
  return {
    type: VOTE_TYPE.precommit,
    height: commit.height,
    round: commit.round,
    blockId: entry.flag === COMMIT_FLAG.commit ? commit.blockId : undefined,
    timeNs,
    validatorAddress,
    validatorIndex,
    signature,
  };
}

/** `tendermint.types.CommitSig`. */
function encodeCommitSignature(entry: CommitSignature): Buffer {
  const writer = new ProtoWriter().integer(1, entry.flag);
  if (entry.flag === COMMIT_FLAG.absent)
    return writer.message(3, encodeTime(ZERO_TIME_NS)).finish();
  return writer
    .bytes(2, addressToBytes(entry.validatorAddress))
    .message(3, encodeTime(entry.timeNs))
    .bytes(4, entry.signature)
    .finish();
}

/** `tendermint.types.Commit`. */
export function encodeCommit(commit: Commit): Buffer {
  const writer = new ProtoWriter()
    .integer(1, commit.height)
    .integer(2, commit.round)
    .message(3, encodeBlockId(commit.blockId));
  for (const entry of commit.signatures) writer.message(4, encodeCommitSignature(entry));
  return writer.finish();
}

/** Untrusted bytes to a commit; signatures are not checked here. Throws INVALID_MESSAGE. */
export function decodeCommit(bytes: Uint8Array): Commit {
  return allAtOnce(decodeCommitSteps(bytes));
}

/** The same in steps: of ten thousand validators it takes a tenth of a second. */
export function* decodeCommitSteps(bytes: Uint8Array): Steps<Commit> {
  const reader = new ProtoReader(bytes, [1, 2, 3], { 4: MAX_VALIDATORS });
  return {
    height: reader.count(1),
    round: readInt32(reader, 2),
    blockId: decodeBlockId(reader.bytes(3)),
    signatures: yield* mapInSteps(reader.repeated(4), decodeCommitSignature),
  };
}

function decodeCommitSignature(bytes: Uint8Array): CommitSignature {
  const reader = new ProtoReader(bytes, [1, 2, 3, 4]);
  const flag = reader.count(1);
  const timeNs = decodeTime(reader.bytes(3));
  if (flag === COMMIT_FLAG.absent) {
    if (reader.has(2) || reader.has(4) || timeNs !== ZERO_TIME_NS) {
      throw invalidMessage("an absent signature with content");
    }
    return { flag };
  }
  if (flag !== COMMIT_FLAG.commit && flag !== COMMIT_FLAG.nil) {
    throw invalidMessage(`commit flag ${flag}`);
  }
  const validatorAddress = readAddress(reader, 2);
  return { flag, validatorAddress, timeNs, signature: readSignature(reader, 4) };
}
