/**
 * Long work in steps that are each well below a millisecond. Written once as a generator, it is
 * done at once where nobody waits, and in slices where others want their turn
 * (`runtime/process/slices.ts`).
 */

/** Work in steps; what it returns is there when the last step is done. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** Does all steps at a stretch. */
export function allAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Items of one sort; a few times as many are merged in a step. */
const SORTED_AT_ONCE = 256;

/** A sorted copy, in steps. Equal items keep their order. */
export function* sortInSteps<Item>(
  items: readonly Item[],
  compare: (left: Item, right: Item) => number,
): Steps<Item[]> {
  let runs: Item[][] = [];
  for (let start = 0; start < items.length; start += SORTED_AT_ONCE) {
    runs.push(items.slice(start, start + SORTED_AT_ONCE).toSorted(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let index = 0; index < runs.length; index += 2) {
      merged.push(yield* merge(runs[index] ?? [], runs[index + 1] ?? [], compare));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function* merge<Item>(
  left: readonly Item[],
  right: readonly Item[],
  compare: (left: Item, right: Item) => number,
): Steps<Item[]> {
  const merged: Item[] = [];
  let next = 0;
  for (const item of left) {
    for (let other = right[next]; other !== undefined && compare(other, item) < 0; ) {
      merged.push(other);
      next += 1;
      other = right[next];
    }
    merged.push(item);
    if (merged.length % SORTED_AT_ONCE === 0) yield;
  }
  for (const item of right.slice(next)) merged.push(item);
  return merged;
}

/** Items of a list in one step: a step for each would cost more than most items do. */
const ITEMS_AT_ONCE = 8;

/** Does something with each item of a list, some in a step. */
export function* eachInSteps<Item>(items: Iterable<Item>, use: (item: Item) => void): Steps<void> {
  let used = 0;
  for (const item of items) {
    use(item);
    used += 1;
    if (used % ITEMS_AT_ONCE === 0) yield;
  }
}

/** Makes one item of each of a list, some in a step. */
export function* mapInSteps<Item, Made>(
  items: Iterable<Item>,
  make: (item: Item) => Made,
): Steps<Made[]> {
  const made: Made[] = [];
  yield* eachInSteps(items, (item) => made.push(make(item)));
  return made;
}
