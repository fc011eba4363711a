/**
 * When a block is valid (CometBFT's state/validation.go): the header that must follow from a tip is
 * written down once, for who proposes a block and for who judges one.
 */
import type { Address } from "../../chain/address.js";
import { isSameBlockId, msToNs, nsToMs } from "../../chain/consensus/block-id.js";
import { type Commit, hashCommit } from "../../chain/consensus/commit.js";
import {
  type ConsensusBlock,
  consensusBlockBytes,
  hashTransactionsSteps,
} from "../../chain/consensus/consensus-block.js";
import {
  BLOCK_PROTOCOL_VERSION,
  type ConsensusHeader,
} from "../../chain/consensus/consensus-header.js";
import { hashConsensusParams } from "../../chain/consensus/consensus-params.js";
import {
  type DuplicateVoteEvidence,
  encodeDuplicateVote,
  hashEvidenceList,
} from "../../chain/consensus/evidence.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Steps } from "../../chain/steps/steps.js";
import { Slices } from "../../runtime/process/slices.js";
import type { ExecutedBlock } from "../store/block-commit.js";
import type { BlockApplication } from "./block-application.js";
import { blockInvalid } from "./block-error.js";
import { blockFactsOf } from "./block-facts.js";
import type { BlockEvidence } from "./block-evidence.js";
import type { ChainTip } from "./chain-tip.js";
import { medianTimeNs, verifyCommit } from "./commit-verification.js";

/**
 * Block 1 is this much later than block 0, whose time is the genesis time: the least by which the
 * whole seconds of EVM headers rise. From then on times follow from votes.
 */
const FIRST_BLOCK_AFTER_NS = msToNs(1_000);

/** What of a block does not follow from the tip. */
export interface BlockContent {
  readonly proposerAddress: Address;
  readonly lastCommit: Commit;
  /** Over the transactions, see `hashTransactions`. */
  readonly dataHash: Hash32;
  readonly evidence: readonly DuplicateVoteEvidence[];
}

/** The header that a block of this content has at the height after the tip, field by field. */
export function headerAfter(tip: ChainTip, content: BlockContent): ConsensusHeader {
  return {
    blockVersion: BLOCK_PROTOCOL_VERSION,
    appVersion: tip.appVersion,
    chainId: tip.chainId,
    height: tip.height + 1,
    timeNs: timeAfterNs(tip, content.lastCommit),
    lastBlockId: tip.lastBlockId,
    lastCommitHash: hashCommit(content.lastCommit),
    dataHash: content.dataHash,
    validatorsHash: tip.validators.hash(),
    nextValidatorsHash: tip.nextValidators.hash(),
    consensusHash: hashConsensusParams(tip.params),
    appHash: tip.appHash,
    lastResultsHash: tip.lastResultsHash,
    evidenceHash: hashEvidenceList(content.evidence),
    proposerAddress: content.proposerAddress,
  };
}

/**
 * Time of the block after the tip: the median time of the votes for the one before (BFT time); a
 * second after the genesis for the first.
 * @throws BLOCK_INVALID for a commit without signatures
 */
export function timeAfterNs({ timeNs, lastValidators }: ChainTip, lastCommit: Commit): bigint {
  if (lastValidators === undefined) return timeNs + FIRST_BLOCK_AFTER_NS;
  return medianTimeNs(lastCommit, lastValidators);
}

/**
 * Validates a block against the tip, evidence included, and executes it: the last check.
 * @throws BLOCK_INVALID, and what is not the block's fault
 */
export async function executeBlock(
  parts: {
    readonly application: Pick<BlockApplication, "execute">;
    readonly evidence: Pick<BlockEvidence, "checkSteps">;
  },
  tip: ChainTip,
  block: ConsensusBlock,
): Promise<ExecutedBlock> {
  const slices = new Slices();
  await slices.run(validitySteps(block, tip));
  await slices.run(parts.evidence.checkSteps(block.evidence, tip));
  const { timeNs, proposerAddress, dataHash } = block.header;
  const facts = blockFactsOf(tip, block.lastCommit, block.evidence);
  const place = { timeMs: nsToMs(timeNs), coinbase: proposerAddress, dataHash, facts };
  return parts.application.execute(place, block.transactions);
}

/**
 * Whether a block may follow the tip, by everything that can be told without executing it:
 *
 * 1. its last commit is that of the tip, signed by two thirds; at height 1 it is empty;
 * 2. its header is the one that follows from tip and content, and its time is later;
 * 3. its proposer is a validator: which one's turn it was depends on a round that nobody knows;
 * 4. block and evidence are within their size.
 *
 * @throws BLOCK_INVALID naming the first rule that is broken
 */
function* validitySteps(block: ConsensusBlock, tip: ChainTip): Steps<void> {
  checkLastCommit(block.lastCommit, tip);
  checkHeader(block, tip, yield* hashTransactionsSteps(block.transactions));
  require(tip.validators.indexOf(block.header.proposerAddress) >= 0, "the proposer");
  checkSizes(block, tip);
}

function checkLastCommit(lastCommit: Commit, tip: ChainTip): void {
  const { lastBlockId, lastValidators } = tip;
  if (lastBlockId === undefined || lastValidators === undefined) {
    const { height, round, blockId, signatures } = lastCommit;
    const isNothing = height === 0 && round === 0 && blockId === undefined;
    require(isNothing && signatures.length === 0, "the last commit of the first block");
    return;
  }
  const expected = { height: tip.height, blockId: lastBlockId, validators: lastValidators };
  verifyCommit(lastCommit, { ...expected, chainId: tip.chainId });
}

/** Fields that are compared as they are, by the names that CometBFT's JSON has for them. */
const FIELDS = [
  ["blockVersion", "the block protocol's version"],
  ["appVersion", "the application's version"],
  ["chainId", "chain_id"],
  ["height", "height"],
  ["lastCommitHash", "last_commit_hash"],
  ["dataHash", "data_hash"],
  ["validatorsHash", "validators_hash"],
  ["nextValidatorsHash", "next_validators_hash"],
  ["consensusHash", "consensus_hash"],
  ["appHash", "app_hash"],
  ["lastResultsHash", "last_results_hash"],
  ["evidenceHash", "evidence_hash"],
] as const;

function checkHeader(block: ConsensusBlock, tip: ChainTip, dataHash: Hash32): void {
  const { header, evidence, lastCommit } = block;
  const { proposerAddress } = header;
  const expected = headerAfter(tip, { proposerAddress, lastCommit, dataHash, evidence });
  for (const [field, name] of FIELDS) require(header[field] === expected[field], name);
  require(isSameBlockId(header.lastBlockId, expected.lastBlockId), "last_block_id");
  const isFirst = tip.lastValidators === undefined;
  const timeName = isFirst ? "the time of the first block" : "the median time";
  require(header.timeNs === expected.timeNs, timeName);
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
