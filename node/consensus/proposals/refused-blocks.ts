/** The last blocks that this node refused, for those who ask why. Lost with the process. */
import { type Commit, COMMIT_FLAG } from "../../../chain/consensus/commit.js";
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
    const { header } = block;
    const sizeBytes = block.transactions.reduce((sum, { length }) => sum + length, 0);
    const transactions = sizeBytes > MAX_TRANSACTION_BYTES ? [] : block.transactions.map(copied);
    const slim = { header, transactions, evidence: [], lastCommit: copiedCommit(block.lastCommit) };
    this.kept = [{ block: slim, reason }, ...this.kept].slice(0, MAX_BLOCKS);
  }

  /** The blocks, the newest first. */
  list(): readonly RefusedBlock[] {
    return this.kept;
  }
}

/** What was read out of a block is a view of all its bytes, and would keep them. */
function copied(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from(bytes);
}

function copiedCommit(commit: Commit): Commit {
  const signatures = commit.signatures.map((entry) =>
    entry.flag === COMMIT_FLAG.absent ? entry : { ...entry, signature: copied(entry.signature) },
  );
  return { ...commit, signatures };
}
