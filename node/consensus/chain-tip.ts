/**
 * What the next block must fit to: everything that consensus knows after a decided height
 * (CometBFT's sm.State). Pure: one height's tip and decided block give the next tip.
 */
import type { BlockId } from "../../chain/consensus/block-id.js";
import type { Commit } from "../../chain/consensus/commit.js";
import type { ConsensusBlock } from "../../chain/consensus/consensus-block.js";
import type { DuplicateVoteEvidence } from "../../chain/consensus/evidence.js";
import { ValidatorSet, type ValidatorUpdate } from "../../chain/consensus/validator-set.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { ConsensusParams } from "./consensus-ports.js";

/** State of consensus after a height; height 0 is the genesis. */
export interface ChainTip {
  readonly chainId: string;
  readonly params: ConsensusParams;
  readonly height: Height;
  /** Undefined at height 0. */
  readonly lastBlockId: BlockId | undefined;
  /** Time of the last block; the genesis time at height 0. */
  readonly timeNs: bigint;
  /** EVM block hash of the height: `app_hash` of the next header (D8). */
  readonly appHash: Hash32;
  /** Over the transactions of the height: `last_results_hash` of the next header. */
  readonly lastResultsHash: Hash32;
  /** Validators of the height; undefined at height 0. */
  readonly lastValidators: ValidatorSet | undefined;
  /** Validators of the next height. */
  readonly validators: ValidatorSet;
  /** Validators of the height after the next. */
  readonly nextValidators: ValidatorSet;
  /** The precommits that decided the height, as this node saw them; undefined at height 0. */
  readonly seenCommit: Commit | undefined;
}

/** What a decided and executed block adds. */
export interface DecidedHeight {
  readonly block: ConsensusBlock;
  readonly blockId: BlockId;
  readonly commit: Commit;
  readonly appHash: Hash32;
  readonly resultsHash: Hash32;
}

/** The tip after the next block; a change of validators takes effect one height later still. */
export function nextTip(tip: ChainTip, decided: DecidedHeight): ChainTip {
  const { block, blockId, commit, appHash, resultsHash } = decided;
  const updates = punishments(block.evidence, tip.nextValidators);
  return {
    ...tip,
    height: block.header.height,
    lastBlockId: blockId,
    timeNs: block.header.timeNs,
    appHash,
    lastResultsHash: resultsHash,
    lastValidators: tip.validators,
    validators: tip.nextValidators,
    nextValidators: tip.nextValidators.update(updates).advance(1),
    seenCommit: commit,
  };
}

/** Who signed twice leaves the set; never the last one, because a chain needs a validator. */
function punishments(
  evidence: readonly DuplicateVoteEvidence[],
  validators: ValidatorSet,
): ValidatorUpdate[] {
  const guilty = new Set(evidence.map(({ voteA }) => voteA.validatorAddress));
  const removed = validators.validators.filter(({ address }) => guilty.has(address));
  if (removed.length === validators.size) return [];
  return removed.map(({ publicKey }) => ({ publicKey, power: 0n }));
}
