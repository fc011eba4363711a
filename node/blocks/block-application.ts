/**
 * A node's way with blocks: builds one from the pool for the proposal of this validator, executes
 * those of others before they are voted for, and settles what was decided (`decision.ts`).
 */
import type { Address } from "../../chain/address.js";
import { type AnyBlockTransaction, isCosmos, isEvm } from "../../chain/block.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Logger } from "../../runtime/process/logger.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import { type BlockFacts, hasModules } from "../modules/modules.js";
import { isPunishable } from "../modules/slashing/signing.js";
import { appVersion } from "../modules/upgrade/plan.js";
import { assertUpgraded, PLAIN_UPGRADES } from "../modules/upgrade/upgrades.js";
import { JournaledState } from "../state/journaled-state.js";
import type { ExecutedBlock } from "../store/block-commit.js";
import { blockInvalid } from "./block-error.js";
import { BlockExecution, type ExecutorOptions } from "./block-executor.js";
import { BlockRoom, computeForGas } from "./block-room.js";
import type { ProposedTransactions } from "./block-pool.js";
import type { ChainTip, ExecutedDecision } from "./chain-tip.js";
import { type ConsensusRecords, type DecisionParts, settleDecision } from "./decision.js";

/** Parts that the application joins. */
export interface ApplicationParts extends DecisionParts {
  readonly executor: ExecutorOptions;
  readonly proposed: ProposedTransactions;
  readonly log: Logger;
}

/** What the consensus header says about the block that is executed. */
export interface BlockPlace {
  /** Block time, Unix milliseconds. */
  readonly timeMs: number;
  /** The proposer. */
  readonly coinbase: Address;
  /** Of a proposal, whose transactions were held against it. */
  readonly dataHash?: Hash32;
  /** Who signed the block before, and who signed twice. */
  readonly facts: BlockFacts;
}

/** What a new block may hold. */
export interface BuildLimits {
  /** Bytes that the SDK transactions may have together. */
  readonly maxBytes: number;
  /** At most the chain's limit. */
  readonly maxGas: bigint;
}

/** The chain as consensus sees it; calls must not overlap. */
export interface BlockApplication {
  /**
   * Builds the next block on the present head from the pool's executable transactions.
   * @throws BALANCE_JOURNAL_MISMATCH, SUPPLY_MISMATCH, UPGRADE_NEEDED, VERSION_UNKNOWN
   */
  build(place: BlockPlace, limits: BuildLimits): Promise<ExecutedBlock>;
  /**
   * Executes a proposed block on the present head.
   * @param transactions SDK transactions as the proposal has them
   * @throws BLOCK_INVALID when one of them cannot be in the block, BALANCE_JOURNAL_MISMATCH,
   * SUPPLY_MISMATCH, UPGRADE_NEEDED, VERSION_UNKNOWN
   */
  execute(place: BlockPlace, transactions: readonly Uint8Array[]): Promise<ExecutedBlock>;
  /** Version of the rules by which the block after the head is made. */
  appVersion(): number;
  /**
   * Whether this program may make the block after the head.
   * @throws UPGRADE_NEEDED, VERSION_UNKNOWN
   */
  assertMayGoOn(): void;
  /**
   * Whether evidence against a key of consensus has an effect on the present head; undefined on a
   * chain without stake, where it has as long as the key is in the set.
   */
  isPunishable(consensusAddress: Address): boolean | undefined;
  /** See `settleDecision`. */
  settle(tip: ChainTip, decision: ExecutedDecision, records: ConsensusRecords): Promise<ChainTip>;
}

/** Connects pool, execution and store. */
export function createBlockApplication(parts: ApplicationParts): BlockApplication {
  return {
    build: (place, limits) => buildBlock(parts, place, limits),
    execute: (place, transactions) => executeProposal(parts, place, transactions),
    appVersion: () => appVersion(new JournaledState(parts.executor.state)),
    assertMayGoOn: () => {
      const state = new JournaledState(parts.executor.state);
      if (!hasModules(state)) return;
      const { upgrades = PLAIN_UPGRADES } = parts.executor;
      assertUpgraded(state, parts.view.head().height + 1, upgrades);
    },
    isPunishable: (address) => isPunishable(new JournaledState(parts.executor.state), address),
    settle: (tip, decision, records) => settleDecision(parts, records, tip, decision),
  };
}

function startBlock(parts: ApplicationParts, place: BlockPlace): BlockExecution {
  const parent = parts.view.head();
  const parentSupply = parts.blocks.supply(parent.height);
  if (parentSupply === undefined) throw new RangeError("the parent's supply is missing");
  const execution = new BlockExecution(parts.executor, { parent, parentSupply, ...place });
  execution.begin();
  return execution;
}

async function executeProposal(
  parts: ApplicationParts,
  place: BlockPlace,
  transactions: readonly Uint8Array[],
): Promise<ExecutedBlock> {
  const { maxGas, maxComputeNs, computeWeights } = parts.executor.params;
  const execution = startBlock(parts, place);
  const room = new BlockRoom({ maxGas, maxComputeNs, computeWeights });
  for (const transaction of await parts.proposed.read(transactions)) {
    const { gasLimit, hash } = transaction.tx;
    const taken = room.take({ gasLimit });
    if (taken === undefined) throw blockInvalid(`transaction ${hash} does not fit`);
    const outcome = await addTo(execution, transaction, room.computeLeftNs);
    if (!outcome.included) {
      throw blockInvalid(`transaction ${hash} cannot be executed: ${outcome.reason}`);
    }
    taken.executed(outcome);
  }
  return execution.seal();
}

/** Executes a transaction of either kind. */
async function addTo(
  execution: BlockExecution,
  transaction: AnyBlockTransaction,
  computeLeftNs: number,
) {
  if (isCosmos(transaction)) return execution.addCosmos(transaction, computeLeftNs);
  if (!isEvm(transaction)) throw new RangeError("a transaction of no kind");
  const outcome = await execution.add(transaction, computeLeftNs);
  if (!outcome.included) return outcome;
  const { receipt, computeNs } = outcome;
  return { included: true as const, gasUsed: receipt.gasUsed, computeNs };
}

async function buildBlock(
  parts: ApplicationParts,
  place: BlockPlace,
  { maxBytes, maxGas }: BuildLimits,
): Promise<ExecutedBlock> {
  failpoint("node.before-block-execution");
  const execution = startBlock(parts, place);
  const { params } = parts.executor;
  const selection = parts.pool.takeForBlock({
    ...params,
    maxGas,
    maxComputeNs: computeForGas(params, maxGas),
    maxBytes,
  });
  // Time spent on transactions that a later block will hold: no more than one of them may take.
  let wastedNs = 0;
  const paying = new Set<Address>();
  for (let next = selection.next(); next !== undefined; next = selection.next()) {
    const mayBeLong = !isEvm(next) || execution.entersCode(next.tx);
    const isTooMuch = wastedNs > params.maxTransactionComputeNs && mayBeLong;
    if (isTooMuch) {
      selection.skipSender(next.from);
      continue;
    }
    const { computeLeftNs } = selection;
    const outcome = await addTo(execution, next, computeLeftNs);
    if (outcome.included) {
      selection.executed(outcome);
      paying.add(next.from);
      continue;
    }
    const { hash } = next.tx;
    selection.skipSender(next.from);
    if (outcome.code === "OUT_OF_BLOCK_COMPUTE") {
      wastedNs += computeLeftNs;
      // A genesis may allow a transaction more than a block, and nobody knew before that it takes it.
      const isNever = computeLeftNs >= params.maxComputeNs;
      if (isNever) parts.pool.drop(hash, "no block has as many compute units as it takes");
    } else if (outcome.code === "EXECUTION_FAULT") {
      parts.log.error({ hash, err: outcome.cause }, "transaction cannot be executed, dropped");
      parts.pool.drop(hash, "the transaction cannot be executed");
    } else if (!followsFromBlock(outcome.code, paying.has(next.from))) {
      // The pool holds it to the same rules, so this is a fault of the pool; it must not stay.
      parts.log.error({ hash, reason: outcome.reason }, "transaction is not valid here, dropped");
      parts.pool.drop(hash, outcome.reason);
    }
  }
  return execution.seal();
}

/** Nonces that another transaction has moved, and times that have passed with the block. */
const LATER_CODES: ReadonlySet<string> = new Set(["NONCE_TOO_LOW", "NONCE_TOO_HIGH", "TIMED_OUT"]);

/**
 * Whether a transaction only has no place behind those that are in the block: the pool lets go of it
 * when the block is decided, and not before.
 * @param hasPaid others of its sender are in the block: what they had the chain's contracts take
 * nobody knew before
 */
function followsFromBlock(code: string, hasPaid: boolean): boolean {
  return LATER_CODES.has(code) || (code === "INSUFFICIENT_FUNDS" && hasPaid);
}
