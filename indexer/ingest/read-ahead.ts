/**
 * Batches ahead of their writing: while the database takes one, the next is there as rows, the one behind it
 * is made into rows, and the node makes the one behind that. Four are under way at most, and nothing behind a
 * large one, so that memory has a bound.
 */
import type { BlockRange } from "../../rpc-client/indexing/block-range.js";
import type { Height } from "../../chain/hex.js";
import { doBreathing } from "../../runtime/process/main-thread.js";
import { type Batch, batchSteps, type RunningTotals } from "./batch-rows.js";
import type { KnownCoins } from "./wrapped-coins.js";

/** A range that was read, and its rows on the condition of what is before it. */
export interface PreparedBatch {
  readonly range: BlockRange;
  /** Sums that the rows carry on; whoever writes them holds these against the tables. */
  readonly before: RunningTotals;
  readonly batch: Batch;
  /** What comes behind; undefined at the node's head, and where it is to be read after the writing. */
  readonly next: () => Promise<PreparedBatch> | undefined;
}

/** Reads the range that begins at a height. */
export type RangeReader = (from: Height) => Promise<BlockRange>;

/**
 * The batch that begins at a height. What is behind it is read and made from then on.
 * @param known wrapped coins of the index; whoever learns of more adds them, for the batches to come
 */
export function prepareBatch(
  read: RangeReader,
  from: Height,
  before: RunningTotals,
  signal: AbortSignal,
  known: KnownCoins = new Map(),
): Promise<PreparedBatch> {
  const first = prepare({ read, signal, known }, read(from), before);
  void first.then((one) => one.goOn()).catch(() => undefined);
  return first;
}

/** A batch that has the one behind it made before anybody comes for it, when it is told to. */
interface LinkedBatch extends PreparedBatch {
  readonly goOn: () => Promise<LinkedBatch> | undefined;
}

async function prepare(
  source: {
    readonly read: RangeReader;
    readonly signal: AbortSignal;
    readonly known: KnownCoins;
  },
  reading: Promise<BlockRange>,
  before: RunningTotals,
): Promise<LinkedBatch> {
  const range = await reading;
  // Asked for before the rows are made: the node works meanwhile.
  const behind = range.next === undefined || isLarge(range) ? undefined : source.read(range.next);
  // Nobody may come for it, where writing fails; who comes gets the fault.
  behind?.catch(() => undefined);
  const known = new Map(source.known);
  const batch = await doBreathing(batchSteps(range.blocks, before, known), source.signal);
  let following: Promise<LinkedBatch> | undefined;
  const goOn = () => {
    if (following === undefined && behind !== undefined) {
      following = prepare(source, behind, batch.totals);
      following.catch(() => undefined);
    }
    return following;
  };
  const next = () => {
    const taken = goOn();
    void taken?.then((one) => one.goOn()).catch(() => undefined);
    return taken;
  };
  return { range, before, batch, next, goOn };
}

/**
 * Hex digits of a large range: more than any answer holds. One block may have five times as much in
 * calls and logs, which are asked for by transaction, and whoever pays for one such block pays for many.
 */
const LARGE_DIGITS = 32 * 1024 * 1024;

function isLarge({ blocks }: BlockRange): boolean {
  let digits = 0;
  for (const { transactions } of blocks) {
    for (const { input, logs } of transactions) {
      digits += input.length;
      for (const { data } of logs) digits += data.length;
    }
  }
  return digits > LARGE_DIGITS;
}
