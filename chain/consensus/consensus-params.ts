/** Parameters of consensus as CometBFT shows and hashes them, and the room that they leave. */
import { sha256Hex } from "../hashes.js";
import type { Hash32 } from "../hex.js";
import { MAX_BLOCK_BYTES, PART_BYTES } from "./consensus-block.js";
import { ProtoWriter } from "../protobuf/wire.js";

/** Parameters of consensus, as CometBFT shows and hashes them. */
export interface ConsensusParams {
  readonly blockMaxBytes: number;
  readonly blockMaxGas: bigint;
  readonly evidenceMaxAgeBlocks: number;
  readonly evidenceMaxAgeNs: bigint;
  readonly evidenceMaxBytes: number;
}

/** Bytes of a header and of the fields around data, evidence and commit, rounded up. */
const HEADER_BYTES = 1_024;
/** Bytes of one entry of a commit, rounded up: flag, address, time, signature. */
const COMMIT_SIGNATURE_BYTES = 128;

/** `consensus_hash`: SHA-256 of `HashedParams`. */
export function hashConsensusParams(params: ConsensusParams): Hash32 {
  const bytes = new ProtoWriter()
    .integer(1, params.blockMaxBytes)
    .integer(2, params.blockMaxGas)
    .finish();
  return sha256Hex(bytes);
}

/**
 * Bytes of the largest block that is made, and voted for where others have made it. A genesis may allow
 * larger ones than any peer takes or gives: decided, nobody could fetch them.
 */
function proposedBytesOf(params: ConsensusParams): number {
  return Math.min(params.blockMaxBytes, MAX_BLOCK_BYTES);
}

/** Parts of that block; all but the last are full. */
export function proposedPartsOf(params: ConsensusParams): number {
  return Math.ceil(proposedBytesOf(params) / PART_BYTES);
}

/** Bytes that a proposed block of this many validators has for transactions. */
export function dataBytesOf(
  params: ConsensusParams,
  validators: number,
  evidenceBytes: number,
): number {
  const commitBytes = validators * COMMIT_SIGNATURE_BYTES;
  return Math.max(0, proposedBytesOf(params) - HEADER_BYTES - commitBytes - evidenceBytes);
}
