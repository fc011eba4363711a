/** The last blocks that this node refused, for those who ask why. Lost with the process. */
import type { ConsensusBlock } from "../../../chain/consensus/consensus-block.js";
import type { RefusedBlock } from "../consensus-ports.js";

/** Blocks that are kept, as many as go-ethereum keeps. */
const MAX_BLOCKS = 10;

/** Transactions of a block that are kept, bytes; a block with more is kept without them. */
const MAX_TRANSACTION_BYTES = 64 * 1024;

/** A bounded list, the newest first. */
export class RefusedBlocks {
  private kept: readonly RefusedBlock[] = [];

  /** Keeps a block; the oldest one goes. */
  add(block: ConsensusBlock, reason: string): void {
    const { header, lastCommit } = block;
    const sizeBytes = block.transactions.reduce((sum, { length }) => sum + length, 0);
    const transactions = sizeBytes > MAX_TRANSACTION_BYTES ? [] : block.transactions;
    const slim = { header, transactions, evidence: [], lastCommit };
    this.kept = [{ block: slim, reason }, ...this.kept].slice(0, MAX_BLOCKS);
  }

  /** The blocks, the newest first. */
  list(): readonly RefusedBlock[] {
    return this.kept;
  }
}
