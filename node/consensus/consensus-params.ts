/** Parameters of consensus as they follow from the genesis, and their hash in headers. */
import { createHash } from "node:crypto";
import { ProtoWriter } from "../../chain/consensus/protobuf.js";
import { bytesToHash32, type Hash32 } from "../../chain/hex.js";
import type { ChainParams } from "../genesis.js";
import type { ConsensusParams } from "./consensus-ports.js";

/** CometBFT's defaults: evidence counts until it is older than both. */
const EVIDENCE_MAX_AGE_BLOCKS = 100_000;
const EVIDENCE_MAX_AGE_MS = 48 * 3_600 * 1_000;
const NS_PER_MS = 1_000_000n;
const EVIDENCE_MAX_BYTES = 1_048_576;

/** Bytes of a header and of the fields around data, evidence and commit, rounded up. */
const HEADER_BYTES = 1_024;
/** Bytes of one entry of a commit, rounded up: flag, address, time, signature. */
const COMMIT_SIGNATURE_BYTES = 128;

/** The parameters of a chain; they never change. */
export function consensusParamsOf(params: ChainParams): ConsensusParams {
  return {
    blockMaxBytes: params.maxBytes,
    blockMaxGas: params.maxGas,
    evidenceMaxAgeBlocks: params.evidenceMaxAgeBlocks ?? EVIDENCE_MAX_AGE_BLOCKS,
    evidenceMaxAgeNs: BigInt(params.evidenceMaxAgeMs ?? EVIDENCE_MAX_AGE_MS) * NS_PER_MS,
    evidenceMaxBytes: Math.min(EVIDENCE_MAX_BYTES, Math.floor(params.maxBytes / 16)),
  };
}

/** `consensus_hash`: SHA-256 of `HashedParams`. */
export function hashConsensusParams(params: ConsensusParams): Hash32 {
  const bytes = new ProtoWriter()
    .integer(1, params.blockMaxBytes)
    .integer(2, params.blockMaxGas)
    .finish();
  return bytesToHash32(createHash("sha256").update(bytes).digest());
}

/** Bytes that a block of this many validators has for transactions. */
export function dataBytesOf(params: ConsensusParams, validators: number, evidenceBytes: number) {
  const commitBytes = validators * COMMIT_SIGNATURE_BYTES;
  return Math.max(0, params.blockMaxBytes - HEADER_BYTES - commitBytes - evidenceBytes);
}
