/**
 * Blocks in order from the Data API, several reads in flight. Each block must follow the one
 * before it: this chain never reorganises, so a break is an incident (D10), never a rewind.
 */
import { setMaxListeners } from "node:events";
import type { Hash32, Height } from "../chain/hex.js";
import type { DataBlock } from "../rpc-client/data-api/data-block.js";
import { IncidentFound } from "./errors.js";

/** How often the blocks of one run name an account, at most: its matching and commit stay small. */
const MAX_RUN_ACCOUNTS = 100_000;

/** Memory of blocks on their way at once. */
const MAX_BYTES_IN_FLIGHT = 24 * 1024 * 1024;

/** Reads at the start, before the size of a block is known. */
const FIRST_READS_IN_FLIGHT = 8;

/** Where blocks come from: the Data API client. */
export interface BlockSource {
  /** Undefined while the source does not have the block. */
  block(height: Height, options: { readonly signal: AbortSignal }): Promise<DataBlock | undefined>;
}

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
  const inner = new AbortController();
  const signal = AbortSignal.any([range.signal, inner.signal]);
  // Each read on its way listens, which is no leak: there are `readsInFlight` at most.
  setMaxListeners(0, signal);
  const window: Read[] = [];
  let nextHeight = range.previous === undefined ? 0 : range.previous.height + 1;
  let previous = range.previous;
  let most = Math.min(range.readsInFlight, FIRST_READS_IN_FLIGHT);
  const fill = () => {
    while (window.length < most && nextHeight <= range.to) {
      window.push(startRead(source, nextHeight, signal));
      nextHeight += 1;
    }
  };
  try {
    for (fill(); window.length > 0; fill()) {
      // Half of what is under way, because few large runs are cheaper to book than many small.
      await Promise.all(window.slice(0, Math.ceil(window.length / 2)).map((read) => read.settled));
      const run: DataBlock[] = [];
      const isLast = takeSettled(window, run);
      for (const block of run) {
        assertFollows(previous, block, range.genesisHash);
        previous = block;
      }
      most = readsFor(run.at(-1), range.readsInFlight) ?? most;
      // Reads go on while the run is booked.
      fill();
      if (run.length > 0) yield run;
      if (isLast) return;
    }
  } finally {
    inner.abort();
    await Promise.all(window.map((read) => read.settled));
  }
}

/** How many blocks like the last one may be on their way; undefined without one. */
function readsFor(last: DataBlock | undefined, readsInFlight: number): number | undefined {
  if (last === undefined) return undefined;
  const fitting = Math.floor(MAX_BYTES_IN_FLIGHT / Math.max(1, last.sizeBytes));
  return Math.min(readsInFlight, Math.max(2, fitting));
}

/** One read on its way; it never rejects by itself, so that none is left unhandled. */
interface Read {
  readonly settled: Promise<void>;
  outcome?: { readonly block: DataBlock | undefined } | { readonly error: unknown };
}

function startRead(source: BlockSource, height: Height, signal: AbortSignal): Read {
  const read: { settled: Promise<void>; outcome?: Read["outcome"] } = {
    settled: Promise.resolve(),
  };
  const settle = async () => {
    try {
      read.outcome = { block: await source.block(height, { signal }) };
    } catch (error) {
      read.outcome = { error };
    }
  };
  read.settled = settle();
  return read;
}

/**
 * Moves the blocks that are here, in order, from the window into the run.
 * @returns true when the source has no more
 */
function takeSettled(window: Read[], run: DataBlock[]): boolean {
  let accounts = 0;
  for (;;) {
    const outcome = window[0]?.outcome;
    if (outcome === undefined) return false;
    if ("error" in outcome) {
      // What was read before the fault is good; the fault comes again with the next step.
      if (run.length > 0) return false;
      throw outcome.error;
    }
    if (outcome.block === undefined) return true;
    accounts += outcome.block.accountCount;
    if (run.length > 0 && accounts > MAX_RUN_ACCOUNTS) return false;
    run.push(outcome.block);
    window.shift();
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
