/**
 * Blocks, commits and validators as CometBFT's JSON has them: 64-bit numbers as strings, hashes
 * and addresses in upper-case hex, bytes in base64, times as RFC 3339.
 */
import { type BlockId, formatTime, ZERO_TIME_NS } from "../../../../chain/consensus/block-id.js";
import {
  type Commit,
  COMMIT_FLAG,
  type CommitSignature,
} from "../../../../chain/consensus/commit.js";
import type { ConsensusBlock } from "../../../../chain/consensus/consensus-block.js";
import type { ConsensusHeader } from "../../../../chain/consensus/consensus-header.js";
import type { DuplicateVoteEvidence } from "../../../../chain/consensus/evidence.js";
import type { MerkleProof } from "../../../../chain/consensus/merkle.js";
import type { Validator } from "../../../../chain/consensus/validator-set.js";
import type { Vote } from "../../../../chain/consensus/vote.js";
import type { ConsensusParams } from "../../../../chain/consensus/consensus-params.js";

/** `0x` hex to upper-case digits without prefix. */
export function upperHex(hex: string): string {
  return hex.slice(2).toUpperCase();
}

/** Bytes to upper-case digits. */
export function upperHexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex").toUpperCase();
}

/** Bytes to base64. */
export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

/** `block_id`; the zero id for nil. */
export function blockIdJson(blockId: BlockId | undefined) {
  if (blockId === undefined) return { hash: "", parts: { total: 0, hash: "" } };
  const { hash, parts } = blockId;
  return { hash: upperHex(hash), parts: { total: parts.total, hash: upperHex(parts.hash) } };
}

/** `header`. */
export function headerJson(header: ConsensusHeader) {
  return {
    version: { block: header.blockVersion.toString(), app: header.appVersion.toString() },
    chain_id: header.chainId,
    height: header.height.toString(),
    time: formatTime(header.timeNs),
    last_block_id: blockIdJson(header.lastBlockId),
    last_commit_hash: upperHex(header.lastCommitHash),
    data_hash: upperHex(header.dataHash),
    validators_hash: upperHex(header.validatorsHash),
    next_validators_hash: upperHex(header.nextValidatorsHash),
    consensus_hash: upperHex(header.consensusHash),
    app_hash: upperHex(header.appHash),
    last_results_hash: upperHex(header.lastResultsHash),
    evidence_hash: upperHex(header.evidenceHash),
    proposer_address: upperHex(header.proposerAddress),
  };
}

/** `commit` and `last_commit`. */
export function commitJson(commit: Commit) {
  return {
    height: commit.height.toString(),
    round: commit.round,
    block_id: blockIdJson(commit.blockId),
    signatures: commit.signatures.map(commitSignatureJson),
  };
}

function commitSignatureJson(entry: CommitSignature) {
  if (entry.flag === COMMIT_FLAG.absent) {
    return {
      block_id_flag: entry.flag,
      validator_address: "",
      timestamp: formatTime(ZERO_TIME_NS),
      signature: null,
    };
  }
  return {
    block_id_flag: entry.flag,
    validator_address: upperHex(entry.validatorAddress),
    timestamp: formatTime(entry.timeNs),
    signature: base64(entry.signature),
  };
}

/** `block`. */
export function blockJson(block: ConsensusBlock) {
  return {
    header: headerJson(block.header),
    data: { txs: block.transactions.map(base64) },
    evidence: { evidence: block.evidence.map(evidenceJson) },
    last_commit: commitJson(block.lastCommit),
  };
}

/** One piece of evidence with its type. */
export function evidenceJson(evidence: DuplicateVoteEvidence) {
  return {
    type: "tendermint/DuplicateVoteEvidence",
    value: {
      vote_a: voteJson(evidence.voteA),
      vote_b: voteJson(evidence.voteB),
      TotalVotingPower: evidence.totalPower.toString(),
      ValidatorPower: evidence.validatorPower.toString(),
      Timestamp: formatTime(evidence.timeNs),
    },
  };
}

/** A vote; extensions are disabled, so theirs are null. */
export function voteJson(vote: Vote) {
  return {
    type: vote.type,
    height: vote.height.toString(),
    round: vote.round,
    block_id: blockIdJson(vote.blockId),
    timestamp: formatTime(vote.timeNs),
    validator_address: upperHex(vote.validatorAddress),
    validator_index: vote.validatorIndex,
    signature: base64(vote.signature),
    extension: null,
    extension_signature: null,
  };
}

/** An ed25519 key with its type. */
export function publicKeyJson(publicKey: Uint8Array) {
  return { type: "tendermint/PubKeyEd25519", value: base64(publicKey) };
}

/** A validator of a set. */
export function validatorJson(validator: Validator) {
  return {
    address: upperHex(validator.address),
    pub_key: publicKeyJson(validator.publicKey),
    voting_power: validator.power.toString(),
    proposer_priority: validator.priority.toString(),
  };
}

/** `consensus_params`. */
export function paramsJson(params: ConsensusParams, appVersion: number) {
  return {
    block: {
      max_bytes: params.blockMaxBytes.toString(),
      max_gas: params.blockMaxGas.toString(),
    },
    evidence: {
      max_age_num_blocks: params.evidenceMaxAgeBlocks.toString(),
      max_age_duration: params.evidenceMaxAgeNs.toString(),
      max_bytes: params.evidenceMaxBytes.toString(),
    },
    validator: { pub_key_types: ["ed25519"] },
    version: { app: appVersion.toString() },
    abci: { vote_extensions_enable_height: "0" },
  };
}

/** Proof that a transaction is under a block's `data_hash`; the leaf is its SHA-256. */
export function transactionProofJson(root: Uint8Array, bytes: Uint8Array, proof: MerkleProof) {
  return {
    root_hash: upperHexOf(root),
    data: base64(bytes),
    proof: {
      total: proof.total.toString(),
      index: proof.index.toString(),
      leaf_hash: base64(proof.leafHash),
      aunts: proof.aunts.map(base64),
    },
  };
}
