/**
 * Deletes what the settings do not keep, in slices between blocks: a slice takes some milliseconds
 * (tens, where a block was full) and is followed by a rest as long; a round ends in good time.
 * Each deletion is one atomic write with the base that tells of it, so that a crash leaves nothing
 * to repair: the next start goes on from the bases.
 */
import type { StateRetention } from "../../settings/pruning-config.js";
import type { Height } from "../../../chain/hex.js";
import type { Clock } from "../../../runtime/process/clock.js";
import { failpoint } from "../../../runtime/process/failpoint.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { createWakeup, sleep } from "../../../runtime/process/task.js";
import {
  blockDeletions,
  HEIGHT_SPACES,
  keysBelow,
  type PrunedStores,
  validatorDeletions,
} from "./block-prune.js";
import { compactBelow, compactByAddress } from "./compaction.js";
import { HistorySweep, type VersionSpace } from "./history-sweep.js";
import type { StateStore } from "../state-store.js";
import { baseWrites, type StoreBase } from "../store-base.js";

/** What pruning works with. */
export interface PrunerOptions extends PrunedStores {
  readonly state: Pick<StateStore, "versionsWritten">;
  readonly base: StoreBase;
  /** Height of the newest published block. */
  readonly head: () => Height;
  /** Undefined where past states are not pruned. */
  readonly states: StateRetention | undefined;
  /** Oldest height whose block must stay, with this head; 0 where no block is pruned. */
  readonly retainedFrom: (head: Height) => Height;
  /** Whether double signing at a height is too old to be punished. */
  readonly isPastEvidence: (height: Height) => boolean;
  /** Longest round. */
  readonly roundMs: number;
  /** Versions written since the last sweep that make the next one due; see `sweepIsDue`. */
  readonly sweepAfterVersions?: number;
  /** Deleted bytes after which the disk gets its space back; see `compactBelow`. */
  readonly compactAfterBytes?: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** It looks around at least this often, whether blocks come or not. */
const IDLE_MS = 10_000;

/** Keys deleted in one write of ranges. */
const SLICE_KEYS = 1_000;

/** Validators of a height follow from a set that lies at most so far below: see ConsensusStore. */
const SETS_REACH_BLOCKS = 1_000;

/** Main-thread work at a stretch. */
const BREATH_MS = 4;

/** A sweep reads everything, so it waits until so many versions more may be needless. */
const SWEEP_AFTER_VERSIONS = 10_000;

/** Or until the versions have grown by this part of what was kept: work stays in proportion. */
const SWEEP_GROWTH_DIVISOR = 4;

/** Blocks deleted between two looks at the space that they still take. */
const COMPACTION_BLOCKS = 100;

const VERSION_SPACES: readonly VersionSpace[] = ["accountHistory", "storageHistory"];

/** Prunes until its signal fires. */
export class Pruner {
  private readonly wakeup = createWakeup();
  /** What is under way; it goes on where the last round ended. */
  private work: AsyncGenerator<void> | undefined;
  /** The first round cleans up what former settings or a crash have left. */
  private isFirst = true;
  private sweptAt: { readonly versions: number; readonly kept: number } | undefined;
  /** Reverse diffs below this height are deleted. */
  private trimmedTo: Height = 0;
  /** Validators of heights below this one are deleted. */
  private setsFrom: Height = 0;
  private stretchStartMs = 0;

  constructor(private readonly options: PrunerOptions) {}

  /** There may be something to do: a block was published. */
  wake(): void {
    this.wakeup.wake();
  }

  /** Works until the signal fires. Throws STORE_WRITE_FAILED. */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.wakeup.wait({ signal, timeoutMs: IDLE_MS });
      await this.round(signal);
    }
  }

  /** Works for a while; true when nothing is left to do now. */
  async round(signal: AbortSignal): Promise<boolean> {
    const { clock, roundMs } = this.options;
    const endMs = clock.monotonicMs() + roundMs;
    this.work ??= this.slices();
    for (;;) {
      const startMs = clock.monotonicMs();
      this.stretchStartMs = startMs;
      const { done } = await this.work.next();
      if (done === true) {
        this.work = undefined;
        return true;
      }
      const nowMs = clock.monotonicMs();
      if (nowMs >= endMs) return false;
      await sleep(nowMs - startMs, { signal });
    }
  }

  /** Everything that is due now; whoever runs it may stop after each slice. */
  private async *slices(): AsyncGenerator<void> {
    const head = this.options.head();
    yield* this.raiseStates(head);
    yield* this.trimDiffs();
    yield* this.pruneBlocks(head);
    yield* this.pruneSets();
    yield* this.sweep();
    if (this.isFirst || head % COMPACTION_BLOCKS === 0) yield* this.compact();
    this.isFirst = false;
  }

  /** From here on older states are refused; their versions go with the next sweep. */
  private async *raiseStates(head: Height): AsyncGenerator<void> {
    const { states, base } = this.options;
    if (states === undefined) return;
    const oldest = head - states.keepRecentBlocks;
    const { historyBase } = base.get();
    const isDue = oldest > historyBase && (this.isFirst || head % states.intervalBlocks === 0);
    if (!isDue && oldest - historyBase < states.intervalBlocks) return;
    await this.write({ historyBase: oldest, proofBase: oldest }, []);
    yield;
  }

  /**
   * Reverse diffs of tries that no proof needs any more. A block deletes the one that it makes needless; more
   * are left by an archive that became a usual node, and by states that are not kept any more.
   */
  private async *trimDiffs(): AsyncGenerator<void> {
    const { database, base } = this.options;
    for (;;) {
      const bound = base.get().proofBase;
      if (bound === this.trimmedTo) return;
      const range = { from: this.trimmedTo, bound, limit: SLICE_KEYS };
      const keys: Buffer[] = [];
      // The pages first: what is left of a diff after a crash is found by its names.
      for await (const key of keysBelow(database, "trieDiffPage", range)) keys.push(key);
      if (keys.length === 0) {
        for await (const key of keysBelow(database, "trieDiff", range)) keys.push(key);
      }
      if (keys.length === 0) {
        this.trimmedTo = bound;
        return;
      }
      // A block that is being written has raised the base, and may never be there to tell of it.
      const { proofBase } = base.get();
      const deletions = keys.map((key) => ({ key, value: undefined }));
      await this.write({}, [...baseWrites({ proofBase }), ...deletions]);
      yield;
    }
  }

  private async *pruneBlocks(head: Height): AsyncGenerator<void> {
    const { base, blocks, retainedFrom, isPastEvidence, log } = this.options;
    const before = base.get().base;
    const bound = retainedFrom(head);
    for (let height = Math.max(1, before); height < bound; height++) {
      if (!isPastEvidence(height)) break;
      const deletions = await blockDeletions(this.options, height, () => this.breathe());
      await this.write({ base: height + 1 }, deletions);
      blocks.forget(height);
      yield;
      if (height % COMPACTION_BLOCKS === 0) yield* this.compact();
    }
    const after = base.get().base;
    if (after > before) log.debug({ from: before, to: after }, "blocks pruned");
  }

  /** Validators of heights below the oldest block, and headers that state sync fetched of them. */
  private async *pruneSets(): AsyncGenerator<void> {
    const { database } = this.options;
    const bound = this.oldestJudged();
    if (bound === this.setsFrom && !this.isFirst) return;
    const from = this.isFirst ? 0 : Math.max(0, this.setsFrom - SETS_REACH_BLOCKS);
    for (;;) {
      const range = { from, base: bound, limit: SLICE_KEYS };
      const deletions = await validatorDeletions(database, range);
      if (deletions.length === 0) break;
      await this.write({}, deletions);
      yield;
    }
    this.setsFrom = bound;
  }

  /**
   * The oldest height at or below the oldest block whose double signing still counts: a node that began
   * by state sync judges it by headers and validators alone, and without them halts at the first block
   * that punishes somebody. Heights grow too old in their order.
   */
  private oldestJudged(): Height {
    let [low, high] = [this.setsFrom, this.options.base.get().base];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.options.isPastEvidence(middle)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Deletes the versions that only refused heights can see. */
  private async *sweep(): AsyncGenerator<void> {
    const { base, database, state, states, log } = this.options;
    const { historyBase } = base.get();
    if (states === undefined || historyBase === 0 || !this.sweepIsDue()) return;
    const versions = state.versionsWritten;
    let [kept, deleted] = [0, 0];
    for (const space of VERSION_SPACES) {
      const sweep = new HistorySweep(database, space, historyBase);
      for (;;) {
        const deletions = await sweep.next();
        if (deletions === undefined) break;
        if (deletions.length > 0) await this.write({}, deletions);
        deleted += deletions.length;
        yield;
      }
      kept += sweep.kept;
    }
    this.sweptAt = { versions, kept };
    if (deleted > kept / SWEEP_GROWTH_DIVISOR) {
      for (const space of VERSION_SPACES) yield* compactByAddress(database, space);
    }
    log.debug({ kept, deleted, historyBase }, "past states pruned");
  }

  private sweepIsDue(): boolean {
    const { sweptAt } = this;
    if (sweptAt === undefined) return true;
    const { state, sweepAfterVersions = SWEEP_AFTER_VERSIONS } = this.options;
    const written = state.versionsWritten - sweptAt.versions;
    return written >= Math.max(sweepAfterVersions, sweptAt.kept / SWEEP_GROWTH_DIVISOR);
  }

  /** Gives back what deleted blocks and reverse diffs take on the disk. */
  private async *compact(): AsyncGenerator<void> {
    const { database, base, compactAfterBytes: dueBytes } = this.options;
    const bases = base.get();
    yield* compactBelow(database, HEIGHT_SPACES, { bound: bases.base, dueBytes });
    yield* compactBelow(database, ["trieDiff", "trieDiffPage"], {
      bound: bases.proofBase,
      dueBytes,
    });
  }

  private async write(...[raised, deletions]: Parameters<StoreBase["advance"]>): Promise<void> {
    failpoint("pruner.before-write");
    await this.options.base.advance(raised, deletions);
    failpoint("pruner.after-write");
  }

  /** Lets others run when this slice has held the main thread for long. */
  private async breathe(): Promise<void> {
    const { clock } = this.options;
    if (clock.monotonicMs() - this.stretchStartMs < BREATH_MS) return;
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    this.stretchStartMs = clock.monotonicMs();
  }
}
