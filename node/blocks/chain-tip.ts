/**
 * What the next block must fit to: everything that consensus knows after a decided height
 * (CometBFT's sm.State). Pure: one height's tip and decided block give the next tip.
 */
import type { BlockId } from "../../chain/consensus/block-id.js";
import type { Commit } from "../../chain/consensus/commit.js";
import type { ConsensusBlock } from "../../chain/consensus/consensus-block.js";
import type { ConsensusParams } from "../../chain/consensus/consensus-params.js";
import type { DuplicateVoteEvidence } from "../../chain/consensus/evidence.js";
import { inDataOrder } from "../../chain/cosmos/cosmos-result.js";
import { executionResult, executionResultSteps } from "../../chain/consensus/execution-result.js";
import { ValidatorSet, type ValidatorUpdate } from "../../chain/consensus/validator-set.js";
import { allAtOnce, mapInSteps, type Steps } from "../../chain/steps/steps.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { ExecutedBlock } from "../store/block-commit.js";
import type { CommittedBlock } from "../view/event-bus.js";

/** State of consensus after a height; height 0 is the genesis. */
export interface ChainTip {
  readonly chainId: string;
  readonly params: ConsensusParams;
  /** Version of the rules of the next block; upgrades raise it. */
  readonly appVersion: number;
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

/** A block that two thirds of the validators decided, executed by this node. */
export interface ExecutedDecision {
  readonly block: ConsensusBlock;
  readonly blockId: BlockId;
  /** The precommits that decided it, as this node saw them. */
  readonly commit: Commit;
  readonly executed: ExecutedBlock;
}

/** The tip after the next block, in steps; a change of validators takes effect one height later still. */
export function* nextTip(tip: ChainTip, decision: ExecutedDecision): Steps<ChainTip> {
  const { block, blockId, commit, executed } = decision;
  const lastResultsHash = yield* resultsHashSteps(executed.committed);
  const updates = executed.validatorUpdates ?? punishments(block.evidence, tip.nextValidators);
  return {
    ...tip,
    appVersion: executed.appVersion ?? tip.appVersion,
    height: block.header.height,
    lastBlockId: blockId,
    timeNs: block.header.timeNs,
    appHash: executed.committed.block.hash,
    lastResultsHash,
    lastValidators: tip.validators,
    validators: tip.nextValidators,
    nextValidators: tip.nextValidators.update(updates).advance(1),
    seenCommit: commit,
  };
}

/** `last_results_hash` of the block after this one. */
export function resultsHashOf(committed: CommittedBlock): Hash32 {
  return allAtOnce(resultsHashSteps(committed));
}

function* resultsHashSteps({ block, receipts }: CommittedBlock): Steps<Hash32> {
  const evm = yield* mapInSteps(receipts.entries(), ([index, receipt]) => {
    const tx = block.transactions[index]?.tx;
    if (tx === undefined) throw new RangeError("a receipt without a transaction");
    return executionResult(tx, receipt);
  });
  const cosmos = (block.cosmos ?? []).map(({ tx, index, result }) => {
    const { code, data, gasUsed } = result;
    return { index, code, data, gasWanted: tx.gasLimit, gasUsed };
  });
  return yield* executionResultSteps(inDataOrder(evm, cosmos));
}

/** Without stake, who signed twice leaves the set; never the last one, because a chain needs a validator. */
function punishments(
  evidence: readonly DuplicateVoteEvidence[],
  validators: ValidatorSet,
): ValidatorUpdate[] {
  const guilty = new Set(evidence.map(({ voteA }) => voteA.validatorAddress));
  const removed = validators.validators.filter(({ address }) => guilty.has(address));
  if (removed.length === validators.size) return [];
  return removed.map(({ publicKey }) => ({ publicKey, power: 0n }));
}
