/** Numbers and times of the blocks of a simulation. */
import type { Height } from "../../../../chain/hex.js";
import type { BlockStateCalls } from "../call-port.js";
import { refused } from "./refusal.js";

/** Blocks that one simulation may make, those that fill gaps included: geth's bound. */
const MAX_SIMULATED_BLOCKS = 256;

/** Time from block to block where the client names none: that of the network. */
const BLOCK_SECONDS = 2;

/** A block whose place is settled. */
export interface PlannedBlock extends BlockStateCalls {
  readonly height: Height;
  readonly timestampSeconds: number;
}

const NO_CALLS: BlockStateCalls = { blockOverrides: {}, overrides: new Map(), calls: [] };

/**
 * Number and time of every block; numbers that a client skips become empty blocks.
 * @throws SIMULATION_REFUSED
 */
export function planBlocks(
  blocks: readonly BlockStateCalls[],
  base: Pick<PlannedBlock, "height" | "timestampSeconds">,
): PlannedBlock[] {
  const planned: PlannedBlock[] = [];
  let { height, timestampSeconds } = base;
  for (const block of blocks) {
    const { height: named = height + 1, timestampSeconds: time } = block.blockOverrides;
    if (named <= height) {
      throw refused("BLOCK_NUMBER_ORDER", `block numbers must be in order: ${named} <= ${height}`);
    }
    if (named - base.height > MAX_SIMULATED_BLOCKS) {
      throw refused("TOO_MANY_BLOCKS", "too many blocks");
    }
    while (height + 1 < named) {
      height += 1;
      timestampSeconds = nextTime(timestampSeconds);
      planned.push({ ...NO_CALLS, height, timestampSeconds });
    }
    if (time !== undefined && time <= timestampSeconds) {
      const text = `block timestamps must be in order: ${time} <= ${timestampSeconds}`;
      throw refused("BLOCK_TIMESTAMP_ORDER", text);
    }
    height = named;
    timestampSeconds = time ?? nextTime(timestampSeconds);
    planned.push({ ...block, height, timestampSeconds });
  }
  return planned;
}

/** Time of the block after one of this time. Numbers above 2^53 - 1 are not exact any more. */
function nextTime(timestampSeconds: number): number {
  const next = timestampSeconds + BLOCK_SECONDS;
  if (Number.isSafeInteger(next)) return next;
  const text = `no block can follow one with the timestamp ${timestampSeconds}: it is too large`;
  throw refused("BLOCK_TIMESTAMP_ORDER", text);
}
