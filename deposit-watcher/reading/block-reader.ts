/**
 * Blocks in order from the Data API, several reads in flight. Each block must follow the one
 * before it: this chain never reorganises, so a break is an incident (D10), never a rewind.
 */
import { setMaxListeners } from "node:events";
import type { Hash32, Height } from "../../chain/hex.js";
import type { DataBlock } from "../../rpc-client/data-api/data-block.js";
import { joinSignals } from "../../runtime/process/task.js";
import { IncidentFound } from "../errors.js";
import type { BlockSource } from "./block-source.js";
import { ReadWindow } from "./read-window.js";

/** The block before the first one to read; undefined before block 0. */
export interface PreviousBlock {
  readonly height: Height;
  readonly hash: Hash32;
}

/** What to read. */
export interface ReadRange {
  readonly previous: PreviousBlock | undefined;
  /** Hash that block 0 must have. */
  readonly genesisHash: Hash32;
  /** Last height, included. */
  readonly to: Height;
  /** Reads at the same time; also the most blocks in one run. */
  readonly readsInFlight: number;
  readonly signal: AbortSignal;
}

/**
 * Yields runs of consecutive blocks as they arrive, each at least one block long, until `to` or
 * until the source has no more: a source behind the head is lag, not an incident.
 * @throws IncidentFound when a block does not follow the one before it; the source's faults
 */
export async function* readRuns(
  source: BlockSource,
  range: ReadRange,
): AsyncGenerator<readonly DataBlock[], void> {
  const inner = joinSignals([range.signal]);
  const { signal } = inner;
  // Each read on its way listens, which is no leak: there are `readsInFlight` at most.
  setMaxListeners(0, signal);
  const window = new ReadWindow(source, { readsInFlight: range.readsInFlight, signal });
  let nextHeight = range.previous === undefined ? 0 : range.previous.height + 1;
  let previous = range.previous;
  const fill = () => {
    while (window.hasRoom && nextHeight <= range.to) {
      window.start(nextHeight);
      nextHeight += 1;
    }
  };
  try {
    for (fill(); window.length > 0; fill()) {
      await window.ready();
      const { run, isLast } = window.take();
      for (const block of run) {
        assertFollows(previous, block, range.genesisHash);
        previous = block;
      }
      // Reads go on while the run is booked.
      fill();
      if (run.length > 0) yield run;
      if (isLast) return;
    }
  } finally {
    inner.abort();
    await window.end();
  }
}

/** The block's place and ancestry against the block before it. */
function assertFollows(
  previous: PreviousBlock | undefined,
  block: DataBlock,
  genesisHash: Hash32,
): void {
  if (previous === undefined) {
    if (block.height === 0 && block.hash === genesisHash) return;
    throw new IncidentFound({
      kind: "HASH_CHANGED",
      height: block.height,
      message: "block 0 of the Data API is not the genesis block of this ledger",
      details: { hash: block.hash, genesisHash },
    });
  }
  if (block.height === previous.height + 1 && block.parentHash === previous.hash) return;
  throw new IncidentFound({
    kind: "PARENT_MISMATCH",
    height: block.height,
    message: `block ${block.height} does not follow block ${previous.height}`,
    details: {
      hash: block.hash,
      parentHash: block.parentHash,
      expectedParentHash: previous.hash,
    },
  });
}
