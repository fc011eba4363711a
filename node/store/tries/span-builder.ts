/**
 * Makes the spans of a store that keeps the diffs of its tries for longer than the window (ADR 95),
 * behind the blocks and in slices: a slice takes some milliseconds and is followed by a longer rest,
 * so that a node whose past has no spans yet makes them beside its work.
 *
 * Pages are on the disk before what makes a span one, so a crash leaves pages that the next start
 * writes again, the same ones. Nothing needs a span: what is not there yet is told by smaller ones.
 */
import { heightBytes, readHeight } from "../../../chain/encoding/height-bytes.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import type { Height } from "../../../chain/hex.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { createWakeup, sleep } from "../../../runtime/process/task.js";
import {
  type Database,
  type KeySpace,
  StoreError,
  storeKey,
  type StoreWrite,
} from "../database.js";
import type { StoreBase } from "../store-base.js";
import { mergeDiffs } from "./span-merge.js";
import {
  diffKey,
  type DiffPlace,
  MAX_SPAN_LEVEL,
  openDiff,
  pageKey,
  SPAN_FAN_OUT,
  spanBlocks,
  type StoredDiff,
} from "./trie-spans.js";

/** What spans are made of. */
export interface SpanBuilderOptions {
  readonly database: Database;
  readonly base: StoreBase;
  /** Whether diffs stay for longer than the window; where not, spans of former settings are deleted. */
  readonly archive: boolean;
  /** Height of the newest published block. */
  readonly head: () => Height;
  readonly clock: Clock;
  readonly log: Logger;
  /** Other than `SPAN_FAN_OUT` in tests only. */
  readonly fanOut?: number;
}

/** It looks around at least this often, whether blocks come or not. */
const IDLE_MS = 10_000;

/** Main-thread work at a stretch. */
const SLICE_MS = 3;

/** A rest in slices before it: blocks, and those who ask, have most of the thread. */
const REST_SLICES = 3;

/** Bytes of pages that are written together; a block's own write may have to wait for one. */
const WRITE_BYTES = 256 * 1024;

/** Keys deleted in one write. */
const DELETED_KEYS = 1_000;

/** Spans that are missing which are worth a word in the log. */
const TOLD_SPANS = 16;

/** Makes spans until its signal fires. */
export class SpanBuilder {
  private readonly wakeup = createWakeup();
  private readonly fanOut: number;
  /** By level, where the next span begins, as far as those that are there tell. */
  private ends: Height[] | undefined;
  /** Spans that begin below this height are deleted. */
  private trimmedTo: Height = 0;
  private sliceStartMs = 0;

  constructor(private readonly options: SpanBuilderOptions) {
    this.fanOut = options.fanOut ?? SPAN_FAN_OUT;
  }

  /** There may be something to do: a block was published. */
  wake(): void {
    this.wakeup.wake();
  }

  /**
   * Works until the signal fires, or diffs are found that contradict each other: then proofs go on
   * without further spans.
   * @throws STORE_WRITE_FAILED
   */
  async run(signal: AbortSignal): Promise<void> {
    const { archive, log } = this.options;
    if (!archive) return this.trim(Number.MAX_SAFE_INTEGER, signal);
    try {
      await this.goOn(signal);
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== "STORE_CORRUPT") throw error;
      log.error({ err: error }, "proofs of old heights: no more spans are made");
    }
  }

  private async goOn(signal: AbortSignal): Promise<void> {
    const { log } = this.options;
    const missing = await this.missing();
    const isMany = missing > TOLD_SPANS;
    if (isMany)
      log.info({ blocks: missing * this.fanOut }, "proofs of old heights: spans are made");
    for (let isFirst = true; ; isFirst = false) {
      await this.round(signal);
      if (isFirst && isMany) log.info("proofs of old heights: all spans are made");
      await this.wakeup.wait({ signal, timeoutMs: IDLE_MS });
    }
  }

  /** Makes all spans that are due, and deletes those of heights that are refused. */
  async round(signal: AbortSignal): Promise<void> {
    this.sliceStartMs = this.options.clock.monotonicMs();
    for (;;) {
      await this.trim(this.options.base.get().proofBase, signal);
      const place = await this.due();
      if (place === undefined) return;
      await this.build(place, signal);
    }
  }

  /** The first span that is missing, of the lowest level that misses one. */
  private async due(): Promise<DiffPlace | undefined> {
    const head = this.options.head();
    let whole = head;
    for (let level = 1; level <= MAX_SPAN_LEVEL; level++) {
      const after = await this.nextOf(level);
      if (after + spanBlocks(level, this.fanOut) <= whole) return { level, after };
      // Those of the next level are made of spans of this one.
      whole = after;
    }
    return undefined;
  }

  /** Spans of the lowest level that are due. */
  private async missing(): Promise<number> {
    const blocks = this.options.head() - (await this.nextOf(1));
    return Math.max(0, Math.floor(blocks / this.fanOut));
  }

  private async nextOf(level: number): Promise<Height> {
    this.ends ??= await this.storedEnds();
    const blocks = spanBlocks(level, this.fanOut);
    const { proofBase } = this.options.base.get();
    return Math.max(this.ends[level] ?? 0, Math.ceil(proofBase / blocks) * blocks);
  }

  private async storedEnds(): Promise<Height[]> {
    const ends: Height[] = [0];
    for (let level = 1; level <= MAX_SPAN_LEVEL; level++) {
      const range = levelRange("trieSpan", level, { from: 0, bound: Number.MAX_SAFE_INTEGER });
      const [last] = await this.options.database.few({ ...range, reverse: true, limit: 1 });
      const blocks = spanBlocks(level, this.fanOut);
      ends.push(last === undefined ? 0 : readHeight(last[0], 2) + blocks);
    }
    return ends;
  }

  private async build(place: DiffPlace, signal: AbortSignal): Promise<void> {
    const ends = (this.ends ??= await this.storedEnds());
    // Behind one that was missing.
    if (openDiff(this.options.database, place) === undefined) {
      if (!(await this.isBuilt(place, signal))) return;
      const blocks = spanBlocks(place.level, this.fanOut);
      this.options.log.debug({ ...place, blocks }, "span made");
    }
    ends[place.level] = place.after + spanBlocks(place.level, this.fanOut);
    await this.pause(signal);
  }

  /** Makes a span; false where pruning has deleted what it is made of, or a smaller one comes first. */
  private async isBuilt(place: DiffPlace, signal: AbortSignal): Promise<boolean> {
    const diffs = await this.diffsOf(place, signal);
    if (diffs === undefined) return false;
    const pages: StoreWrite[] = [];
    let sizeBytes = 0;
    const write = (page: StoreWrite) => {
      pages.push(page);
      sizeBytes += page.value?.length ?? 0;
    };
    const steps = mergeDiffs({ diffs, keyOf: (page) => pageKey(place, page), write });
    for (;;) {
      const step = this.stepOf(steps, place);
      if (step === undefined) return false;
      if (step.done === true) pages.push({ key: diffKey(place), value: encodeRlp(step.value) });
      if (step.done === true || sizeBytes >= WRITE_BYTES) {
        // Each for itself: of a span that is told of no page may be lost by a power cut.
        await this.options.database.write(pages.splice(0), { durable: true });
        sizeBytes = 0;
      }
      if (step.done === true) return true;
      await this.pause(signal);
    }
  }

  /** The next step; undefined where pruning has deleted what the span is made of. */
  private stepOf<Step>(steps: { next(): Step }, { after }: DiffPlace): Step | undefined {
    try {
      return steps.next();
    } catch (error) {
      if (this.options.base.get().proofBase > after) return undefined;
      throw error;
    }
  }

  private async diffsOf(
    { level, after }: DiffPlace,
    signal: AbortSignal,
  ): Promise<StoredDiff[] | undefined> {
    const { database, base } = this.options;
    const blocks = spanBlocks(level - 1, this.fanOut);
    const diffs: StoredDiff[] = [];
    for (let index = 0; index < this.fanOut; index++) {
      const place = { level: level - 1, after: after + index * blocks };
      const diff = openDiff(database, place);
      if (base.get().proofBase > after) return undefined;
      if (diff === undefined && level > 1 && this.ends !== undefined) {
        // Deleted by a program that began at the oldest: it is made again.
        this.ends[level - 1] = place.after;
        return undefined;
      }
      if (diff === undefined) {
        throw new StoreError("STORE_CORRUPT", "a reverse diff is missing", {
          details: { ...place },
        });
      }
      diffs.push(diff);
      await this.pause(signal);
    }
    return diffs;
  }

  /**
   * Deletes spans that begin below a height: first what makes them spans, then their pages. The newest goes
   * first: where it is ended, and was not meant, what is left is a beginning, and the others are made again.
   */
  private async trim(bound: Height, signal: AbortSignal): Promise<void> {
    if (bound <= this.trimmedTo) return;
    for (const space of ["trieSpan", "trieSpanPage"] as const) {
      for (let level = 1; level <= MAX_SPAN_LEVEL; level++) {
        await this.deleteBelow(levelRange(space, level, { from: this.trimmedTo, bound }), signal);
      }
    }
    this.trimmedTo = bound;
  }

  private async deleteBelow(range: Range, signal: AbortSignal): Promise<void> {
    const { database } = this.options;
    for (let { to } = range; ; ) {
      const deletions: StoreWrite[] = [];
      const newest = { from: range.from, to, reverse: true, limit: DELETED_KEYS };
      for await (const key of database.keys(newest)) {
        deletions.push({ key, value: undefined });
        to = key;
      }
      if (deletions.length === 0) return;
      // No span may be left without its pages by a power cut.
      await database.write(deletions, { durable: true });
      await this.pause(signal);
    }
  }

  /** Rests when this slice has held the main thread for long. */
  private async pause(signal: AbortSignal): Promise<void> {
    const { clock } = this.options;
    const tookMs = clock.monotonicMs() - this.sliceStartMs;
    if (tookMs < SLICE_MS) return;
    await sleep(tookMs * REST_SLICES, { signal });
    this.sliceStartMs = clock.monotonicMs();
  }
}

interface Range {
  readonly from: Buffer;
  readonly to: Buffer;
}

/** Keys of a level that begin at heights from one on and below another one. */
function levelRange(
  space: Extract<KeySpace, "trieSpan" | "trieSpanPage">,
  level: number,
  { from, bound }: { readonly from: Height; readonly bound: Height },
): Range {
  const prefix = Uint8Array.of(level);
  return {
    from: storeKey(space, prefix, heightBytes(from)),
    to: storeKey(space, prefix, heightBytes(bound - 1), Buffer.alloc(4, 0xff)),
  };
}
