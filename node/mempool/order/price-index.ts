/**
 * What is in the pool by price: which transaction goes first when the pool is full, and how much
 * pays less than a given price (D23). Prices are levels in ascending runs, so that finding the
 * cheapest is immediate and adding, removing and counting take a search over some hundred runs
 * even when all prices differ.
 */
import assert from "node:assert/strict";
import type { Address } from "../../../chain/address.js";
import type { Atoken } from "../../../chain/units.js";
import type { PoolEntry } from "./pool-entry.js";

/** What the index needs of an entry. */
export type PricedEntry = Pick<PoolEntry, "priceAtoken" | "from" | "weightBytes">;

/** A part of the pool. */
export interface PoolPart {
  readonly count: number;
  /** Sum of their weights. */
  readonly weightBytes: number;
}

/** Most levels of a run; a longer one is divided. */
const MAX_RUN_LEVELS = 256;

interface Run extends PoolPart {
  count: number;
  weightBytes: number;
  /** Ascending, never empty. */
  levels: PriceLevel[];
}

/** A sender at one price. */
interface SenderCount {
  readonly sender: Address;
  count: number;
  /** Where it stands in the list of its size. */
  index: number;
}

/** All transactions of one price, counted by sender. */
class PriceLevel {
  /** The run that the level is in. */
  run: Run;
  count = 0;
  weightBytes = 0;
  private readonly senders = new Map<Address, SenderCount>();
  /** Senders with 2^n to 2^(n+1) - 1 transactions here, at place n. */
  private readonly bySize: SenderCount[][] = [];

  constructor(
    readonly priceAtoken: Atoken,
    run: Run,
  ) {
    this.run = run;
  }

  /** Transactions of a sender at this price. */
  countOf(sender: Address): number {
    const known = this.senders.get(sender);
    return known === undefined ? 0 : known.count;
  }

  /** A sender with the most transactions here, as far as powers of two tell; of these a late one. */
  largestSender(): Address {
    for (let place = this.bySize.length - 1; place >= 0; place--) {
      const last = this.bySize[place]?.at(-1);
      if (last !== undefined) return last.sender;
    }
    throw new RangeError("a price without transactions");
  }

  /** Counts one more (1) or less (-1) of a sender. */
  change(sender: Address, by: 1 | -1): void {
    const known = this.senders.get(sender) ?? { sender, count: 0, index: -1 };
    const from = placeOf(known.count);
    known.count += by;
    const to = placeOf(known.count);
    if (from === to) return;
    if (from < 0) this.senders.set(sender, known);
    else this.leave(known, from);
    if (to < 0) this.senders.delete(sender);
    else this.join(known, to);
  }

  private join(one: SenderCount, place: number): void {
    const list = this.bySize[place] ?? [];
    one.index = list.push(one) - 1;
    this.bySize[place] = list;
  }

  private leave(one: SenderCount, place: number): void {
    const list = this.bySize[place];
    const last = list?.pop();
    assert(list !== undefined && last !== undefined, "a sender is not in the list of its size");
    if (last === one) return;
    list[one.index] = last;
    last.index = one.index;
  }
}

/** Place of a number of transactions: its binary logarithm, -1 for none. */
function placeOf(count: number): number {
  return 31 - Math.clz32(count);
}

/** The pool's transactions by price. */
export class PriceIndex {
  private readonly levels = new Map<bigint, PriceLevel>();
  /** Ascending, none empty. */
  private readonly runs: Run[] = [];

  /** Takes in a transaction. */
  add(entry: PricedEntry): void {
    const level = this.levels.get(entry.priceAtoken) ?? this.addLevel(entry.priceAtoken);
    change(level, entry, 1);
  }

  /** Takes out a transaction that is in the index. */
  remove(entry: PricedEntry): void {
    const level = this.levels.get(entry.priceAtoken);
    assert(level !== undefined, "a transaction is not in the price index");
    change(level, entry, -1);
    if (level.count === 0) this.removeLevel(level);
  }

  /** The lowest price; undefined when the index is empty. */
  cheapest(): PriceLevel | undefined {
    return this.runs[0]?.levels[0];
  }

  /** What pays less than a price. */
  cheaperThan(priceAtoken: Atoken): PoolPart {
    const index = this.findRun(priceAtoken);
    const run = this.runs[index];
    const near = run === undefined ? [] : run.levels;
    const parts = [
      ...this.runs.slice(0, index),
      ...near.slice(
        0,
        firstNot(near, (level) => level.priceAtoken < priceAtoken),
      ),
    ];
    return {
      count: parts.reduce((sum, part) => sum + part.count, 0),
      weightBytes: parts.reduce((sum, part) => sum + part.weightBytes, 0),
    };
  }

  /** The run that a price belongs into: the first that does not end below it, or the last. */
  private findRun(priceAtoken: Atoken): number {
    const isBelow = (run: Run): boolean => {
      const last = run.levels.at(-1);
      return last !== undefined && last.priceAtoken < priceAtoken;
    };
    return Math.min(firstNot(this.runs, isBelow), Math.max(0, this.runs.length - 1));
  }

  private addLevel(priceAtoken: Atoken): PriceLevel {
    const index = this.findRun(priceAtoken);
    const run = this.runs[index] ?? this.addRun(0, []);
    const level = new PriceLevel(priceAtoken, run);
    const place = firstNot(run.levels, (other) => other.priceAtoken < priceAtoken);
    run.levels.splice(place, 0, level);
    this.levels.set(priceAtoken, level);
    if (run.levels.length > MAX_RUN_LEVELS) {
      this.addRun(index + 1, run.levels.splice(MAX_RUN_LEVELS / 2));
    }
    return level;
  }

  /** Makes a run of levels that leave theirs. */
  private addRun(index: number, levels: PriceLevel[]): Run {
    const run: Run = { levels, count: 0, weightBytes: 0 };
    for (const level of levels) {
      level.run.count -= level.count;
      level.run.weightBytes -= level.weightBytes;
      run.count += level.count;
      run.weightBytes += level.weightBytes;
      level.run = run;
    }
    this.runs.splice(index, 0, run);
    return run;
  }

  private removeLevel({ priceAtoken, run }: PriceLevel): void {
    const index = this.findRun(priceAtoken);
    assert(this.runs[index] === run, "a price is not in its run");
    const place = firstNot(run.levels, (other) => other.priceAtoken < priceAtoken);
    run.levels.splice(place, 1);
    this.levels.delete(priceAtoken);
    if (run.levels.length === 0) this.runs.splice(index, 1);
  }
}

function change(level: PriceLevel, { from, weightBytes }: PricedEntry, by: 1 | -1): void {
  level.change(from, by);
  const { run } = level;
  level.count += by;
  run.count += by;
  level.weightBytes += by * weightBytes;
  run.weightBytes += by * weightBytes;
}

/** Index of the first item that does not pass; a passing one never follows one that does not. */
function firstNot<Item>(items: readonly Item[], passes: (item: Item) => boolean): number {
  let [from, to] = [0, items.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const item = items[middle];
    if (item !== undefined && passes(item)) from = middle + 1;
    else to = middle;
  }
  return from;
}
