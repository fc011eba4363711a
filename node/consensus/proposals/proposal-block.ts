/** Makes and judges blocks: the one that this node proposes, and those that come in. */
import type { Address } from "../../../chain/address.js";
import { nsToMs } from "../../../chain/consensus/block-id.js";
import type { Commit } from "../../../chain/consensus/commit.js";
import {
  blockIdOf,
  type ConsensusBlock,
  decodeConsensusBlock,
  encodeConsensusBlock,
  partSteps,
} from "../../../chain/consensus/consensus-block.js";
import { hashConsensusHeader } from "../../../chain/consensus/consensus-header.js";
import { dataBytesOf } from "../../../chain/consensus/consensus-params.js";
import {
  type DuplicateVoteEvidence,
  encodeDuplicateVote,
} from "../../../chain/consensus/evidence.js";
import { wrapsEthereum } from "../../../chain/consensus/sdk-transaction-decode.js";
import { hasTooManyMessages } from "../../../chain/cosmos/cosmos-transaction.js";
import { AppError, errorMessage } from "../../../chain/errors.js";
import { ZERO_HASH } from "../../../chain/hex.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { Slices } from "../../../runtime/process/slices.js";
import type { BlockApplication } from "../../blocks/block-application.js";
import { blockFactsOf } from "../../blocks/block-facts.js";
import { encodeTransactionSteps } from "../../blocks/block-transactions.js";
import { executeBlock, headerAfter, timeAfterNs } from "../../blocks/block-validity.js";
import type { ChainTip } from "../../blocks/chain-tip.js";
import type { EvidencePool } from "../evidence-pool.js";
import type { Candidate, WholeParts } from "./height-blocks.js";
import type { RefusedBlocks } from "./refused-blocks.js";

/** What making and judging blocks needs. */
export interface BlockMakerParts {
  readonly application: BlockApplication;
  readonly evidence: EvidencePool;
  /** Where blocks that break a rule are kept for those who ask. */
  readonly refused: RefusedBlocks;
  readonly log: Logger;
}

/** Faults that make a block invalid; all others are faults of this node. */
const INVALID_CODES: ReadonlySet<string> = new Set(["BLOCK_INVALID", "INVALID_MESSAGE"]);

/** Builds the block that follows the tip from pool and evidence, and executes it on the way. */
export async function buildCandidate(
  parts: BlockMakerParts,
  tip: ChainTip,
  start: {
    readonly lastCommit: Commit;
    readonly proposer: Address;
    /** Most gas that the block may hold. */
    readonly maxGas: bigint;
  },
): Promise<Candidate> {
  const { lastCommit, proposer, maxGas } = start;
  const timeNs = timeAfterNs(tip, lastCommit);
  const evidence = parts.evidence.forBlock(tip);
  const maxBytes = dataBytesOf(tip.params, lastCommit.signatures.length, bytesOf(evidence));
  const facts = blockFactsOf(tip, lastCommit, evidence);
  const place = { timeMs: nsToMs(timeNs), coinbase: proposer, facts };
  const executed = await parts.application.build(place, { maxBytes, maxGas });
  const slices = new Slices();
  const { dataHash } = executed.committed.block;
  const transactions = await slices.run(encodeTransactionSteps(executed.committed.block));
  const block: ConsensusBlock = {
    header: headerAfter(tip, { proposerAddress: proposer, lastCommit, dataHash, evidence }),
    transactions,
    evidence,
    lastCommit,
  };
  await slices.pause();
  const partSet = await slices.run(partSteps(encodeConsensusBlock(block)));
  return { id: blockIdOf(block, partSet), parts: partSet.parts, block, executed };
}

/**
 * Judges a block by executing it. A block that breaks a rule is a candidate without execution.
 * @throws what is not the block's fault, for example BALANCE_JOURNAL_MISMATCH
 */
export function judgeCandidate(
  parts: BlockMakerParts,
  tip: ChainTip,
  received: WholeParts,
): Promise<Candidate> {
  return judge(parts, tip, received, decodeOrUndefined(received.bytes));
}

/**
 * Judges a block that is only proposed. Verifying evidence takes long, and so does reading messages that lie
 * in each other: what a proposer brings more of than honest ones do is not looked at.
 * @returns undefined for such a block, which gets no vote and is no candidate; else as `judgeCandidate`
 */
export async function judgeProposed(
  parts: BlockMakerParts,
  tip: ChainTip,
  received: WholeParts,
): Promise<Candidate | undefined> {
  const block = decodeOrUndefined(received.bytes);
  const excess = block === undefined ? undefined : await excessOf(parts, block);
  if (block === undefined || excess === undefined) return judge(parts, tip, received, block);
  refuse(parts, block, `${excess} than is looked at`);
  return undefined;
}

/**
 * What a block has more of than any pool takes: no honest proposer's. It breaks no rule of blocks, and what
 * two thirds have voted for is not asked for it.
 */
async function excessOf(
  { evidence }: BlockMakerParts,
  block: ConsensusBlock,
): Promise<string | undefined> {
  if (evidence.isOverfull(block.evidence)) return "more evidence against one validator";
  const slices = new Slices();
  for (const raw of block.transactions) {
    if (!wrapsEthereum(raw) && hasTooManyMessages(raw)) {
      return "a transaction with more messages in each other";
    }
    const turn = slices.pause();
    if (turn !== undefined) await turn;
  }
  return undefined;
}

async function judge(
  parts: BlockMakerParts,
  tip: ChainTip,
  received: WholeParts,
  block: ConsensusBlock | undefined,
): Promise<Candidate> {
  const hash = block === undefined ? ZERO_HASH : hashConsensusHeader(block.header);
  const id = { hash, parts: received.header };
  if (block === undefined) return { id, parts: received.parts, block, executed: undefined };
  try {
    const executed = await executeBlock(parts, tip, block);
    return { id, parts: received.parts, block, executed };
  } catch (error) {
    if (!isBlocksFault(error)) throw error;
    refuse(parts, block, errorMessage(error));
    return { id, parts: received.parts, block, executed: undefined };
  }
}

function refuse({ refused, log }: BlockMakerParts, block: ConsensusBlock, reason: string): void {
  const { height, proposerAddress } = block.header;
  refused.add(block, reason);
  log.warn({ height, proposerAddress, reason }, "a proposed block is not valid");
}

function decodeOrUndefined(bytes: Uint8Array): ConsensusBlock | undefined {
  try {
    return decodeConsensusBlock(bytes);
  } catch (error) {
    if (isBlocksFault(error)) return undefined;
    throw error;
  }
}

function isBlocksFault(error: unknown): boolean {
  return error instanceof AppError && INVALID_CODES.has(error.code);
}

function bytesOf(evidence: readonly DuplicateVoteEvidence[]): number {
  return evidence.reduce((sum, one) => sum + encodeDuplicateVote(one).length + 8, 0);
}
