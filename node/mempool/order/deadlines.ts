/**
 * Transactions that are void after a height or a time, ordered by it: what a block costs follows what
 * expires with it, whatever else is in the pool and says until when it is good.
 */
import type { Hash32 } from "../../../chain/hex.js";
import { Heap } from "./heap.js";
import type { PoolEntry } from "./pool-entry.js";

/** A place in the order: what has left the pool must not keep its bytes here. */
interface Place {
  readonly hash: Hash32;
  /** The last height, or time, at which a block can hold it. */
  readonly last: number;
}

/** What the order needs of an entry. */
export interface TimedEntry extends Pick<PoolEntry, "deadline"> {
  readonly tx: Pick<PoolEntry["tx"], "hash">;
}

/** So many places of what has left the pool are not worth making the order anew. */
const FEW_PLACES = 1_024;

/** An entry's places, at most. */
const ENTRY_PLACES = 2;

/** Entries with deadlines. The places of those that leave stay until most of them are such. */
export class Deadlines {
  private readonly held = new Set<TimedEntry>();
  private heights = new Heap(isEarlier);
  private times = new Heap(isEarlier);

  /** Places in the order: bounded by the entries that are held. */
  get placeCount(): number {
    return this.heights.size + this.times.size;
  }

  /** Takes in an entry, unless it has no deadline or is held already. */
  add(entry: TimedEntry): void {
    if (entry.deadline === undefined || this.held.has(entry)) return;
    this.held.add(entry);
    this.place(entry);
  }

  /** Lets go of an entry that leaves the pool. */
  delete(entry: TimedEntry): void {
    if (!this.held.delete(entry)) return;
    if (this.placeCount > 2 * ENTRY_PLACES * this.held.size + FEW_PLACES) this.orderAnew();
  }

  /**
   * Takes out one that no block after the head can hold; undefined where there is none. It may have left
   * the pool, and may be named twice.
   */
  takeVoid(headHeight: number, headTimeMs: number): Hash32 | undefined {
    return takeBefore(this.heights, headHeight + 1) ?? takeBefore(this.times, headTimeMs);
  }

  /** At least as many as are held have left since the last time: that pays for it. */
  private orderAnew(): void {
    this.heights = new Heap(isEarlier);
    this.times = new Heap(isEarlier);
    for (const entry of this.held) this.place(entry);
  }

  private place({ deadline, tx: { hash } }: TimedEntry): void {
    if (deadline === undefined) return;
    const { height, timeMs } = deadline;
    if (height < Infinity) this.heights.push({ hash, last: height });
    if (timeMs < Infinity) this.times.push({ hash, last: timeMs });
  }
}

function isEarlier(left: Place, right: Place): boolean {
  return left.last < right.last;
}

function takeBefore(places: Heap<Place>, now: number): Hash32 | undefined {
  const { first } = places;
  return first === undefined || first.last >= now ? undefined : places.pop()?.hash;
}
