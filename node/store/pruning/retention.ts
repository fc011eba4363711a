/** Which blocks may be pruned: the rule alone (the SDK's GetBlockRetentionHeight, and what we add). */
import type { Height } from "../../../chain/hex.js";

/** What keeps blocks; numbers are blocks below the head. */
export interface BlockRetention {
  /** Setting `min-retain-blocks`; 0 keeps every block. */
  readonly minRetainBlocks: number;
  /** Double signing that was so long ago can still be punished: votes are judged by the block. */
  readonly evidenceMaxAgeBlocks: number;
  /** States that are kept, where the older ones are pruned: a call needs the block of its state. */
  readonly stateBlocks: number;
  /** Blocks that a validator looks through for its own signatures when it starts. */
  readonly doubleSignCheckBlocks: number;
}

/**
 * Oldest height whose block has to stay; everything below may go, 0 = nothing may.
 * @param oldestSnapshot whoever joins by it needs its block and all that follow
 */
export function retainedFrom(
  head: Height,
  retention: BlockRetention,
  oldestSnapshot: Height | undefined,
): Height {
  const { minRetainBlocks, ...needed } = retention;
  if (minRetainBlocks === 0) return 0;
  const keptBlocks = Math.max(minRetainBlocks, ...Object.values(needed));
  return Math.max(0, Math.min(head - keptBlocks, oldestSnapshot ?? head));
}
