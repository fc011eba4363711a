/**
 * Calls that are answered together: those that arrive in the same turn of the event loop, or while
 * no further batch may run, share the next one. One database commit, disk write or request to a node
 * then serves many.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { sleep } from "./task.js";

interface Call<Item, Result> {
  readonly items: readonly Item[];
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
}

/** How calls are gathered. */
export interface BatcherOptions<Item, Result> {
  /** Gives one result per item, in order; its rejection is passed to all callers of the batch. */
  readonly run: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** Calls join a batch until it holds this many items; a call is never split over two batches. */
  readonly maxBatchItems: number;
  /** Batches under way at once; default 1, which also keeps them in the order of arrival. */
  readonly maxRunning?: number;
  /** Whether a batch's fault is as much one of the calls that wait: they are rejected with it. */
  readonly endsWaiting?: (error: unknown) => boolean;
  /**
   * Wait before a batch that follows another at once: whoever was just answered may ask again, and
   * shares it. One that comes after a rest, and a full one, do not wait; nor does any once the signal
   * has fired.
   */
  readonly gather?: { readonly waitMs: number; readonly signal: AbortSignal };
}

/** Runs batches of calls' items. What waits is bounded by the callers, who wait for their results. */
export class Batcher<Item, Result> {
  private calls: Call<Item, Result>[] = [];
  private isWanted = false;
  private readonly running = new Set<Promise<void>>();
  private starting: Promise<void> | undefined;

  constructor(private readonly options: BatcherOptions<Item, Result>) {}

  /** Items that wait for a batch. */
  get waitingCount(): number {
    return this.calls.reduce((count, { items }) => count + items.length, 0);
  }

  /** The results of the items, once their batch has run. */
  add(items: readonly Item[]): Promise<readonly Result[]> {
    return new Promise((resolve, reject) => {
      this.calls.push({ items, resolve, reject });
      this.wake();
    });
  }

  /** The result of one item. */
  async addOne(item: Item): Promise<Result> {
    const [result] = await this.add([item]);
    if (result === undefined) throw new Error("a batch gave no result for an item");
    return result;
  }

  /** Makes a batch run soon, even without items. */
  wake(): void {
    this.isWanted = true;
    this.starting ??= this.start();
  }

  /** Resolves when nothing is under way or waiting. */
  async idle(): Promise<void> {
    while (this.starting !== undefined || this.running.size > 0) {
      await (this.starting ?? Promise.race(this.running));
    }
  }

  /** Starts batches while some are wanted, each one turn later: then all of a burst is here. */
  private async start(): Promise<void> {
    const { maxRunning = 1, maxBatchItems, gather } = this.options;
    for (let isFirst = true; this.isWanted; isFirst = false) {
      if (gather !== undefined && !isFirst && this.waitingCount < maxBatchItems) {
        await sleep(gather.waitMs, gather).catch(() => undefined);
      }
      await nextTurn();
      const batch = this.takeBatch();
      this.isWanted = this.calls.length > 0;
      const run = this.runBatch(batch).finally(() => this.running.delete(run));
      this.running.add(run);
      if (this.running.size >= maxRunning) await Promise.race(this.running);
    }
    this.starting = undefined;
  }

  private takeBatch(): readonly Call<Item, Result>[] {
    let itemCount = 0;
    let callCount = 0;
    for (const call of this.calls) {
      if (callCount > 0 && itemCount + call.items.length > this.options.maxBatchItems) break;
      itemCount += call.items.length;
      callCount++;
    }
    return this.calls.splice(0, callCount);
  }

  private async runBatch(batch: readonly Call<Item, Result>[]): Promise<void> {
    try {
      const items = batch.flatMap((call) => call.items);
      const results = await this.options.run(items);
      if (results.length !== items.length) throw new Error("a batch gave not one result per item");
      let start = 0;
      for (const call of batch) {
        call.resolve(results.slice(start, start + call.items.length));
        start += call.items.length;
      }
    } catch (error) {
      for (const call of batch) call.reject(error);
      if (this.options.endsWaiting?.(error) === true) this.rejectWaiting(error);
    }
  }

  private rejectWaiting(error: unknown): void {
    this.isWanted = false;
    for (const call of this.calls.splice(0)) call.reject(error);
  }
}
