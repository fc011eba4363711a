/** A whole consensus block, and its bytes in parts of 64 KiB as proposals travel. */
import { sha256 } from "../hashes.js";
import { bytesToHash32, type Hash32, hexToBytes } from "../hex.js";
import type { BlockId, PartSetHeader } from "./block-id.js";
import { type Commit, decodeCommit, encodeCommit } from "./commit.js";
import {
  type ConsensusHeader,
  decodeConsensusHeader,
  encodeConsensusHeader,
  hashConsensusHeader,
} from "./consensus-header.js";
import { decodeDuplicateVote, type DuplicateVoteEvidence } from "./evidence.js";
import { encodeDuplicateVote } from "./evidence.js";
import {
  type MerkleProof,
  merkleRootOf,
  merkleRootSteps,
  provenRootSteps,
  verifyMerkleProof,
} from "./merkle.js";
import { allAtOnce, mapInSteps, type Steps } from "../steps/steps.js";
import { invalidMessage, ProtoReader, ProtoWriter, varintBytes } from "../protobuf/wire.js";

/** A block as consensus decides it. */
export interface ConsensusBlock {
  readonly header: ConsensusHeader;
  /** SDK transactions, in order. */
  readonly transactions: readonly Uint8Array[];
  readonly evidence: readonly DuplicateVoteEvidence[];
  readonly lastCommit: Commit;
}

/** Bytes of one part, as in CometBFT. */
export const PART_BYTES = 65_536;

/** Largest block, bytes; CometBFT's limit is 100 MiB, its default parameter 4 MiB. */
export const MAX_BLOCK_BYTES = 22_020_096;

/** More transactions than fit into the largest block. */
export const MAX_TRANSACTIONS = 200_000;

/** Most bytes of evidence in any block, as CometBFT's default. */
export const MAX_EVIDENCE_BYTES = 1_048_576;

/** Shortest piece of evidence: two votes with signatures. And what is around each in a block. */
const MIN_EVIDENCE_BYTES = 200;
const EVIDENCE_OVERHEAD_BYTES = 8;

/** More pieces of evidence than fit into a block's share for it. */
const MAX_EVIDENCE = Math.floor(MAX_EVIDENCE_BYTES / MIN_EVIDENCE_BYTES);

/** Each piece takes a fifteenth of a millisecond to read: what is too long is not begun with. */
const MAX_EVIDENCE_FIELD_BYTES = MAX_EVIDENCE_BYTES + MAX_EVIDENCE * EVIDENCE_OVERHEAD_BYTES;

/** One part of a block with the proof that it belongs to it. */
export interface BlockPart {
  readonly index: number;
  readonly bytes: Uint8Array;
  readonly proof: MerkleProof;
}

/** `data_hash`: Merkle root over the SHA-256 hashes of the transactions. */
export function hashTransactions(transactions: readonly Uint8Array[]): Hash32 {
  return bytesToHash32(merkleRootOf(transactions.map(sha256)));
}

/** The same in steps. */
export function* hashTransactionsSteps(transactions: readonly Uint8Array[]): Steps<Hash32> {
  return bytesToHash32(yield* merkleRootSteps(yield* mapInSteps(transactions, sha256)));
}

/** The same, where the hashes are known. */
export function dataHashOf(transactionHashes: readonly Hash32[]): Hash32 {
  return allAtOnce(dataHashSteps(transactionHashes));
}

/** The same in steps. */
export function* dataHashSteps(transactionHashes: readonly Hash32[]): Steps<Hash32> {
  return bytesToHash32(yield* merkleRootSteps(yield* mapInSteps(transactionHashes, hexToBytes)));
}

/** `tendermint.types.Block`. */
export function encodeConsensusBlock(block: ConsensusBlock): Buffer {
  const data = new ProtoWriter();
  for (const transaction of block.transactions) data.message(1, transaction);
  return encodeAround(block, data.finish());
}

/** Length of `encodeConsensusBlock`; the transactions are not written out for it. */
export function consensusBlockBytes(block: ConsensusBlock): number {
  let dataBytes = 0;
  for (const { length } of block.transactions) dataBytes += dataItemBytes(length);
  return bytesAround(block, dataBytes);
}

/** What a transaction of so many bytes takes in a block. */
export function dataItemBytes(length: number): number {
  return 1 + varintBytes(length) + length;
}

/** Length of a block whose transactions take `dataBytes`: the sum of `dataItemBytes`. */
export function bytesAround(
  block: Omit<ConsensusBlock, "transactions">,
  dataBytes: number,
): number {
  const withoutData = encodeAround(block, new Uint8Array(0)).length;
  // The empty data's length takes one byte, as does a tag.
  return withoutData - 1 + varintBytes(dataBytes) + dataBytes;
}

function encodeAround(block: Omit<ConsensusBlock, "transactions">, data: Uint8Array): Buffer {
  const evidence = new ProtoWriter();
  for (const one of block.evidence) {
    evidence.message(1, new ProtoWriter().message(1, encodeDuplicateVote(one)).finish());
  }
  return new ProtoWriter()
    .message(1, encodeConsensusHeader(block.header))
    .message(2, data)
    .message(3, evidence.finish())
    .message(4, encodeCommit(block.lastCommit))
    .finish();
}

/**
 * Untrusted bytes to a block. Only the one canonical encoding is accepted, so that equal blocks
 * have equal bytes and parts. Nothing is verified beyond the shape.
 * @throws INVALID_MESSAGE
 */
export function decodeConsensusBlock(bytes: Uint8Array): ConsensusBlock {
  const reader = new ProtoReader(bytes, [1, 2, 3, 4]);
  if (reader.bytes(3).length > MAX_EVIDENCE_FIELD_BYTES) throw invalidMessage("too much evidence");
  const block: ConsensusBlock = {
    header: decodeConsensusHeader(reader.bytes(1)),
    transactions: new ProtoReader(reader.bytes(2), [], { 1: MAX_TRANSACTIONS }).repeated(1),
    evidence: new ProtoReader(reader.bytes(3), [], { 1: MAX_EVIDENCE })
      .repeated(1)
      .map((wrapped) => decodeDuplicateVote(new ProtoReader(wrapped, [1]).bytes(1))),
    lastCommit: decodeCommit(reader.bytes(4)),
  };
  if (Buffer.compare(encodeConsensusBlock(block), bytes) !== 0) {
    throw invalidMessage("the block is not in its canonical encoding");
  }
  return block;
}

/** A block's bytes divided into parts. */
export interface PartSet {
  readonly header: PartSetHeader;
  readonly parts: readonly BlockPart[];
}

/** Divides the bytes of a block. */
export function splitIntoParts(bytes: Uint8Array): PartSet {
  return allAtOnce(partSteps(bytes));
}

/** The same in steps of a part each. */
export function* partSteps(bytes: Uint8Array): Steps<PartSet> {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += PART_BYTES) {
    chunks.push(bytes.subarray(at, at + PART_BYTES));
  }
  const { root, proofs } = yield* provenRootSteps(chunks);
  return {
    header: { total: chunks.length, hash: bytesToHash32(root) },
    parts: chunks.flatMap((chunk, index) => {
      const proof = proofs[index];
      return proof === undefined ? [] : [{ index, bytes: chunk, proof }];
    }),
  };
}

/** Whether a part belongs to the part set of a header. */
export function isPartOf(part: BlockPart, header: PartSetHeader): boolean {
  const { index, bytes, proof } = part;
  const isPlaced = index < header.total && proof.index === index && proof.total === header.total;
  const isLast = index === header.total - 1;
  const isSized =
    bytes.length > 0 && (isLast ? bytes.length <= PART_BYTES : bytes.length === PART_BYTES);
  return isPlaced && isSized && verifyMerkleProof(proof, hexToBytes(header.hash), bytes);
}

/** What votes for the block name. */
export function blockIdOf(block: ConsensusBlock, parts: PartSet): BlockId {
  return { hash: hashConsensusHeader(block.header), parts: parts.header };
}
