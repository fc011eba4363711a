/** Reads of blocks on their way, in the order of heights, within a bound of memory. */
import type { Height } from "../../chain/hex.js";
import type { DataBlock } from "../../rpc-client/data-api/data-block.js";
import type { BlockSource } from "./block-source.js";

/** How often the blocks of one run name an account, at most: its matching and commit stay small. */
const MAX_RUN_ACCOUNTS = 100_000;

/** Memory of blocks on their way at once. */
const MAX_BYTES_IN_FLIGHT = 24 * 1024 * 1024;

/** Reads at the start, before the size of a block is known. */
const FIRST_READS_IN_FLIGHT = 8;

/** One read on its way; it never rejects by itself, so that none is left unhandled. */
interface Read {
  settled: Promise<void>;
  outcome?: { readonly block: DataBlock | undefined } | { readonly error: unknown };
  /** Lets it go on, where it waits for its turn. */
  admit?: (() => void) | undefined;
  /** Had its turn: the sizes of others say nothing about its block. */
  isLarge?: boolean;
}

/** Reads a range of blocks ahead of whoever takes them in order: fewer at once where blocks are large. */
export class ReadWindow {
  readonly #source: BlockSource;
  readonly #readsInFlight: number;
  readonly #signal: AbortSignal;
  readonly #reads: Read[] = [];
  /** Reads at once, by the size of the last block that was taken, ... */
  #most: number;
  /** ... and those among them that had to wait for their turn, by the size of such a block. */
  #mostLarge: number;
  #wake: () => void = () => undefined;

  constructor(
    source: BlockSource,
    { readsInFlight, signal }: { readonly readsInFlight: number; readonly signal: AbortSignal },
  ) {
    this.#source = source;
    this.#readsInFlight = readsInFlight;
    this.#signal = signal;
    this.#most = Math.min(readsInFlight, FIRST_READS_IN_FLIGHT);
    this.#mostLarge = this.#most;
  }

  /** Reads whose blocks were not taken. */
  get length(): number {
    return this.#reads.length;
  }

  /** Whether one more read may start. */
  get hasRoom(): boolean {
    if (this.#reads.length >= this.#most) return false;
    const bytes = this.#reads.reduce((sum, read) => sum + (blockOf(read)?.sizeBytes ?? 0), 0);
    return bytes < MAX_BYTES_IN_FLIGHT;
  }

  /** Starts the read of the next height. */
  start(height: Height): void {
    const read: Read = { settled: Promise.resolve() };
    this.#reads.push(read);
    read.settled = this.#settle(read, height);
  }

  async #settle(read: Read, height: Height): Promise<void> {
    const turn = () =>
      new Promise<void>((resolve) => {
        // Nothing is taken any more that would make room.
        if (this.#signal.aborted) return resolve();
        read.admit = resolve;
        this.#admit();
        this.#wake();
      });
    try {
      const block = await this.#source.block(height, { signal: this.#signal, turn });
      read.outcome = { block };
      if (read.isLarge === true && block !== undefined) this.#mostLarge = this.#fitting(block);
    } catch (error) {
      read.outcome = { error };
    }
    this.#admit();
    this.#wake();
  }

  /**
   * Resolves when half of what is under way is here, because few large runs are cheaper to book than many
   * small. What waits for its turn, and what is behind it, is not under way.
   */
  async ready(): Promise<void> {
    for (;;) {
      const waiting = this.#reads.findIndex(({ admit }) => admit !== undefined);
      const underWay = waiting < 0 ? this.#reads.length : waiting;
      const half = this.#reads.slice(0, Math.ceil(underWay / 2));
      if (half.every(({ outcome }) => outcome !== undefined)) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /**
   * Takes the blocks that are here, in order.
   * @returns them, and whether the source has no more
   * @throws the source's fault where it is what comes first
   */
  take(): { readonly run: readonly DataBlock[]; readonly isLast: boolean } {
    const run: DataBlock[] = [];
    const isLast = takeSettled(this.#reads, run);
    const last = run.at(-1);
    if (last !== undefined) this.#most = this.#fitting(last);
    this.#admit();
    return { run, isLast };
  }

  /** Resolves when no read is under way any more. The signal has fired. */
  async end(): Promise<void> {
    for (const { admit } of this.#reads) admit?.();
    await Promise.all(this.#reads.map(({ settled }) => settled));
  }

  /** The first ones first: the first of all always, because nothing is taken before it is here. */
  #admit(): void {
    let large = this.#reads.filter(({ isLarge }) => isLarge === true).length;
    for (const [place, read] of this.#reads.entries()) {
      if (read.admit === undefined) continue;
      if (place > 0 && large >= this.#mostLarge) return;
      read.admit();
      read.admit = undefined;
      read.isLarge = true;
      large += 1;
    }
  }

  /** How many blocks like this one may be on their way. */
  #fitting({ sizeBytes }: DataBlock): number {
    const fitting = Math.floor(MAX_BYTES_IN_FLIGHT / Math.max(1, sizeBytes));
    return Math.min(this.#readsInFlight, Math.max(2, fitting));
  }
}

function blockOf({ outcome }: Read): DataBlock | undefined {
  return outcome !== undefined && "block" in outcome ? outcome.block : undefined;
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
