/**
 * Everything that a received block must satisfy before it is executed (CometBFT's
 * state/validation.go). Execution itself is the last check: see BlockApplication.
 */
import { isSameBlockId } from "../../chain/consensus/block-id.js";
import { EMPTY_COMMIT, hashCommit } from "../../chain/consensus/commit.js";
import {
  type ConsensusBlock,
  consensusBlockBytes,
  hashTransactions,
} from "../../chain/consensus/consensus-block.js";
import {
  APP_PROTOCOL_VERSION,
  BLOCK_PROTOCOL_VERSION,
} from "../../chain/consensus/consensus-header.js";
import { encodeDuplicateVote, hashEvidenceList } from "../../chain/consensus/evidence.js";
import type { ChainTip } from "./chain-tip.js";
import { medianTimeNs, verifyCommit } from "./commit-votes.js";
import { blockInvalid } from "./consensus-error.js";
import { hashConsensusParams } from "./consensus-params.js";

/**
 * Checks a block against the tip that it follows, its last commit's signatures included. Evidence
 * and transactions are not looked into.
 * @throws BLOCK_INVALID naming the first rule that is broken
 */
export function validateBlock(block: ConsensusBlock, tip: ChainTip): void {
  checkOwnHashes(block);
  checkAgainstTip(block, tip);
  checkLastCommit(block, tip);
  checkSizes(block, tip);
}

/** What the header says about the rest of the block. */
function checkOwnHashes({ header, transactions, evidence, lastCommit }: ConsensusBlock): void {
  require(header.dataHash === hashTransactions(transactions), "data_hash");
  require(header.evidenceHash === hashEvidenceList(evidence), "evidence_hash");
  require(header.lastCommitHash === hashCommit(lastCommit), "last_commit_hash");
}

function checkAgainstTip({ header }: ConsensusBlock, tip: ChainTip): void {
  require(header.blockVersion === BLOCK_PROTOCOL_VERSION, "the block protocol's version");
  require(header.appVersion === APP_PROTOCOL_VERSION, "the application's version");
  require(header.chainId === tip.chainId, "chain_id");
  require(header.height === tip.height + 1, "height");
  require(isSameBlockId(header.lastBlockId, tip.lastBlockId), "last_block_id");
  require(header.appHash === tip.appHash, "app_hash");
  require(header.lastResultsHash === tip.lastResultsHash, "last_results_hash");
  require(header.consensusHash === hashConsensusParams(tip.params), "consensus_hash");
  require(header.validatorsHash === tip.validators.hash(), "validators_hash");
  require(header.nextValidatorsHash === tip.nextValidators.hash(), "next_validators_hash");
  // The round in which it was first proposed is unknown, so any validator may have been its turn.
  require(tip.validators.indexOf(header.proposerAddress) >= 0, "the proposer");
}

/** The commit of the height before, and the time that follows from it. */
function checkLastCommit({ header, lastCommit }: ConsensusBlock, tip: ChainTip): void {
  const { lastBlockId, lastValidators } = tip;
  if (lastBlockId === undefined || lastValidators === undefined) {
    const isEmpty = hashCommit(lastCommit) === hashCommit(EMPTY_COMMIT);
    require(isEmpty && lastCommit.blockId === undefined, "the last commit of the first block");
    require(header.timeNs === tip.timeNs, "the time of the first block");
    return;
  }
  const expected = { height: tip.height, blockId: lastBlockId, validators: lastValidators };
  verifyCommit(lastCommit, { ...expected, chainId: tip.chainId });
  require(header.timeNs === medianTimeNs(lastCommit, lastValidators), "the median time");
  require(header.timeNs > tip.timeNs, "a time after the last block's");
}

function checkSizes(block: ConsensusBlock, tip: ChainTip): void {
  const evidenceBytes = block.evidence.reduce(
    (sum, one) => sum + encodeDuplicateVote(one).length,
    0,
  );
  require(evidenceBytes <= tip.params.evidenceMaxBytes, "the evidence's size");
  require(consensusBlockBytes(block) <= tip.params.blockMaxBytes, "the block's size");
}

function require(isTrue: boolean, what: string): void {
  if (!isTrue) throw blockInvalid(`${what} is wrong`);
}
