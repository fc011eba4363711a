/** Reads that several routes share: one height's decided block with what execution made of it. */
import { LRUCache } from "lru-cache";
import type { BlockId } from "../../../chain/consensus/block-id.js";
import type { Commit } from "../../../chain/consensus/commit.js";
import {
  type ConsensusBlock,
  encodeConsensusBlock,
} from "../../../chain/consensus/consensus-block.js";
import type { ConsensusHeader } from "../../../chain/consensus/consensus-header.js";
import type { DuplicateVoteEvidence } from "../../../chain/consensus/evidence.js";
import type { Height } from "../../../chain/hex.js";
import type { ConsensusView } from "../../consensus/consensus-ports.js";
import type { CommittedBlock } from "../../event-bus.js";
import { blockIdJson, blockJson } from "./encode.js";
import { refused } from "./errors.js";
import type { CometChain } from "./ports.js";

/** A block without its transactions: what headers, commits and metas are made of. */
export interface BlockSummary {
  readonly header: ConsensusHeader;
  readonly blockId: BlockId;
  readonly lastCommit: Commit;
  /** The precommits that this node saw; others may have seen more. */
  readonly seenCommit: Commit;
  readonly evidence: readonly DuplicateVoteEvidence[];
  readonly transactionCount: number;
  readonly sizeBytes: number;
}

/** Summaries kept; 20 KiB each with a hundred validators. */
const MAX_SUMMARIES = 512;

/** By the view they were read from: loading a full block to show its header costs milliseconds. */
const summaries = new WeakMap<ConsensusView, LRUCache<Height, BlockSummary>>();

/** Newest height that is decided, stored and published. */
export function latestHeight({ view, consensus }: CometChain): Height {
  return Math.min(view.head().height, consensus.height());
}

/** The summary of a height in range; undefined when it is gone. */
export function summaryAt(consensus: ConsensusView, height: Height): BlockSummary | undefined {
  const cache = summaries.get(consensus) ?? new LRUCache({ max: MAX_SUMMARIES });
  summaries.set(consensus, cache);
  const known = cache.get(height);
  if (known !== undefined) return known;
  const decided = consensus.load(height);
  const blockId = decided?.commit.blockId;
  if (decided === undefined || blockId === undefined) return undefined;
  const { header, lastCommit, evidence, transactions } = decided.block;
  const summary: BlockSummary = {
    header,
    blockId,
    lastCommit,
    seenCommit: decided.commit,
    evidence,
    transactionCount: transactions.length,
    sizeBytes: encodeConsensusBlock(decided.block).length,
  };
  cache.set(height, summary);
  return summary;
}

/** The summary of a height in range. Throws INTERNAL when it is gone. */
export function needSummary({ consensus }: CometChain, height: Height): BlockSummary {
  const summary = summaryAt(consensus, height);
  if (summary === undefined) throw refused(`block of height ${height} is not available`);
  return summary;
}

/** The whole decided block of a height in range. Throws INTERNAL when it is gone. */
function decidedAt(
  { consensus }: CometChain,
  height: Height,
): { block: ConsensusBlock; blockId: BlockId } {
  const decided = consensus.load(height);
  const blockId = decided?.commit.blockId;
  if (decided === undefined || blockId === undefined) {
    throw refused(`block of height ${height} is not available`);
  }
  return { block: decided.block, blockId };
}

/** Block, receipts and journal of a height in range. Throws INTERNAL when they are gone. */
export function committedAt(chain: CometChain, height: Height): CommittedBlock {
  assertResults(chain, height);
  const committed = chain.view.block(height);
  if (committed === undefined) throw refused(`results of height ${height} are not available`);
  return committed;
}

/** Throws INTERNAL, in CometBFT's words, where the results of a height are not here any more. */
export function assertResults({ view }: CometChain, height: Height): void {
  const { journal } = view.oldest();
  if (height >= journal) return;
  throw refused(`height ${height} is not available, lowest height is ${journal}`);
}

/** `block_id` and `block` of a height. */
export function blockResult(chain: CometChain, height: Height) {
  const { block, blockId } = decidedAt(chain, height);
  return { block_id: blockIdJson(blockId), block: blockJson(block) };
}
