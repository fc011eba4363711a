/**
 * Batches ahead of their writing: while the database takes one, the next is made into rows and the
 * node makes the one behind it. Three are under way at most, so that memory has a bound.
 */
import type { BlockRange } from "../../rpc-client/indexing/block-range.js";
import type { Height } from "../../chain/hex.js";
import { type Batch, batchInSlices, type RunningTotals } from "./batch-rows.js";

/** A range that was read, and its rows on the condition of what is before it. */
export interface PreparedBatch {
  readonly range: BlockRange;
  /** Sums that the rows carry on; whoever writes them holds these against the tables. */
  readonly before: RunningTotals;
  readonly batch: Batch;
  /** What comes behind; undefined at the node's head. */
  readonly next: () => Promise<PreparedBatch> | undefined;
}

/** Reads the range that begins at a height. */
export type RangeReader = (from: Height) => Promise<BlockRange>;

/** The batch that begins at a height. What is behind it is read from then on. */
export function prepareBatch(
  read: RangeReader,
  from: Height,
  before: RunningTotals,
  signal: AbortSignal,
): Promise<PreparedBatch> {
  return prepared(read, read(from), before, signal);
}

async function prepared(
  read: RangeReader,
  reading: Promise<BlockRange>,
  before: RunningTotals,
  signal: AbortSignal,
): Promise<PreparedBatch> {
  const range = await reading;
  // Asked for before the rows are made: the node works meanwhile.
  const behind = range.next === undefined ? undefined : read(range.next);
  // Nobody may come for it, where writing fails; who comes gets the fault.
  behind?.catch(() => undefined);
  const batch = await batchInSlices(range.blocks, before, signal);
  const next = () => {
    if (behind === undefined) return undefined;
    const following = prepared(read, behind, batch.totals, signal);
    following.catch(() => undefined);
    return following;
  };
  return { range, before, batch, next };
}
