/**
 * What a decision changes. Every block that becomes part of the chain passes here, whether this
 * node took part in deciding it or follows others, and nothing else changes the chain.
 */
import type { AnyBlockTransaction } from "../../chain/block.js";
import { inDataOrder } from "../../chain/cosmos/cosmos-result.js";
import { consensusBlockBytes } from "../../chain/consensus/consensus-block.js";
import type { ValidatorSet } from "../../chain/consensus/validator-set.js";
import type { ConsensusBlock } from "../../chain/consensus/consensus-block.js";
import type { Height } from "../../chain/hex.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import { Slices } from "../../runtime/process/slices.js";
import type { TrieCache } from "../state/trie-cache.js";
import { commitBlock } from "../store/block-commit.js";
import { type BlockStore, memorySteps } from "../store/blocks/block-store.js";
import type { ConsensusStore } from "../store/consensus-store.js";
import type { Database, StoreWrite } from "../store/database.js";
import type { PoolStore } from "../store/pool-store.js";
import type { StateStore } from "../store/state-store.js";
import type { StoreBase } from "../store/store-base.js";
import type { EventBus } from "../view/event-bus.js";
import type { BlockEvidence } from "./block-evidence.js";
import { type BlockPool, minedTransactions } from "./block-pool.js";
import { type ChainTip, type ExecutedDecision, nextTip } from "./chain-tip.js";
import type { CommittedView } from "./committed-view.js";

/** Named crash points of a block's way into the chain, for the fault tests. */
export const NODE_FAILPOINTS = [
  "node.before-block-execution",
  "node.before-block-write",
  "node.after-block-write",
  "node.after-block-publish",
] as const;

/** Crash points between the effects that are consensus' own. */
export type DecisionFailpoint =
  | "consensus.before-commit"
  | "consensus.after-block-write"
  | "consensus.after-end-height";

/** What of the node a decision changes. */
export interface DecisionParts {
  readonly database: Database;
  readonly blocks: BlockStore;
  readonly state: StateStore;
  readonly tries: TrieCache;
  readonly base: StoreBase;
  readonly archive: boolean;
  readonly view: CommittedView;
  readonly bus: EventBus;
  readonly pool: BlockPool;
  readonly poolStore: PoolStore;
}

/** What of consensus a decision changes. */
export interface ConsensusRecords {
  readonly store: ConsensusStore;
  readonly evidence: BlockEvidence;
  /** The log of the heights in which this node takes part; none while it follows others. */
  readonly log: { endHeight(height: Height): Promise<void> } | undefined;
  readonly onDecided: (report: DecidedReport) => void;
  readonly failpoint: (name: DecisionFailpoint) => void;
}

/** A decided block, for metrics. */
export interface DecidedReport {
  readonly type: "decided";
  readonly block: ConsensusBlock;
  /** Size of the block as peers send it. */
  readonly sizeBytes: number;
  /** Time of the block before. */
  readonly lastTimeNs: bigint;
  /** Validators of the block's height, and of the one before; none before the first. */
  readonly validators: ValidatorSet;
  readonly lastValidators: ValidatorSet | undefined;
}

/**
 * Makes a decided and executed block part of the chain. The effects, in this order:
 *
 * 1. One atomic, fsynced write: block, receipts, journal, state, tries, indexes, supply; header,
 *    commit, validators and evidence. First of all, because nobody may see what a power cut can
 *    take back; a crash before it is made good from the log of consensus, with the same decision.
 * 2. The state as readers in this process have it, trie nodes and the block's cached form.
 * 3. The head moves: from here on every reader sees the block.
 * 4. The pool lets go of what was mined and of what can no longer follow. Before anybody hears of
 *    the block, so that a receipt and a pending transaction never show at once.
 * 5. Listeners hear of the block: subscriptions, indexes, metrics.
 * 6. The pool's journal forgets what was mined. After a crash before this the chain's index says
 *    that it was.
 * 7. The log of consensus gets the mark that the height is over, where this node took part. After
 *    a crash before this the log is told again at the next start.
 * 8. Evidence that the block took, or that is too old now, is forgotten; votes that contradict
 *    each other become evidence, as their height is decided.
 * 9. Metrics of consensus hear of the decision.
 *
 * @returns the tip with the block: what the next block must follow from
 * @throws STORE_WRITE_FAILED: nothing of the block was stored; WAL_WRITE_FAILED
 */
export async function settleDecision(
  parts: DecisionParts,
  records: ConsensusRecords,
  tip: ChainTip,
  decision: ExecutedDecision,
): Promise<ChainTip> {
  const next = await new Slices().run(nextTip(tip, decision));
  const { block, executed } = decision;
  records.failpoint("consensus.before-commit");
  failpoint("node.before-block-write");
  await commitBlock(parts, executed, { writes: consensusWrites(records, tip, next, block) });
  failpoint("node.after-block-write");
  await publish(parts, decision);
  failpoint("node.after-block-publish");
  records.failpoint("consensus.after-block-write");
  await records.log?.endHeight(next.height);
  records.failpoint("consensus.after-end-height");
  await records.evidence.afterBlock(next, block.evidence);
  records.onDecided({
    type: "decided",
    block,
    sizeBytes: consensusBlockBytes(block),
    lastTimeNs: tip.timeNs,
    validators: tip.validators,
    lastValidators: tip.lastValidators,
  });
  return next;
}

/** Effects 2 to 6. */
async function publish(parts: DecisionParts, { executed }: ExecutedDecision): Promise<void> {
  const { committed, changes, trieWrites } = executed;
  const { block } = committed;
  const slices = new Slices();
  await slices.run(parts.tries.applySteps(trieWrites));
  const sizeBytes = await slices.run(memorySteps(committed));
  const all: readonly AnyBlockTransaction[] = inDataOrder(block.transactions, block.cosmos);
  const transactions = await slices.run(minedTransactions(all));
  // From here to the event nothing waits: who reads sees the one head or the other.
  parts.state.publish(changes);
  parts.blocks.remember(committed, sizeBytes);
  const { height } = block.header;
  parts.view.moveHead({ height, hash: block.hash, timeMs: block.timeMs });
  const letGo = parts.pool.onBlockCommitted({ transactions, touched: changes.accounts.keys() });
  parts.bus.emit("block", committed);
  await slices.run(letGo);
  await slices.run(parts.state.takeOver());
  await parts.poolStore.mined([...transactions.keys()]);
}

/** Writes of consensus for a decided height, to go with the block's. */
function consensusWrites(
  { store, evidence: pool }: ConsensusRecords,
  tip: ChainTip,
  next: ChainTip,
  block: ConsensusBlock,
): StoreWrite[] {
  const { lastBlockId, seenCommit, nextValidators } = next;
  if (lastBlockId === undefined || seenCommit === undefined) {
    throw new RangeError("a decided height has a block and a commit");
  }
  const { header, evidence, lastCommit } = block;
  const isSetChanged = nextValidators.hash() !== tip.nextValidators.hash();
  return [
    ...store.writesOf({
      header,
      evidence,
      lastCommit,
      blockId: lastBlockId,
      seenCommit,
      nextValidators,
      isSetChanged,
    }),
    ...pool.writesOf(evidence, next),
  ];
}
