/** Parameters of consensus as CometBFT shows and hashes them, and the room that they leave. */
import { sha256Hex } from "../hashes.js";
import type { Hash32 } from "../hex.js";
import { MAX_BLOCK_BYTES } from "./consensus-block.js";
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
 * Bytes that a block of this many validators has for transactions. A genesis may allow larger blocks than any
 * peer takes: who proposed one would have it refused in each of its turns.
 */
export function dataBytesOf(
  params: ConsensusParams,
  validators: number,
  evidenceBytes: number,
): number {
  const commitBytes = validators * COMMIT_SIGNATURE_BYTES;
  const mostBytes = Math.min(params.blockMaxBytes, MAX_BLOCK_BYTES);
  return Math.max(0, mostBytes - HEADER_BYTES - commitBytes - evidenceBytes);
}
