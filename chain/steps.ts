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

/** Makes one item of each of a list, a step for each. */
export function* mapInSteps<Item, Made>(
  items: Iterable<Item>,
  make: (item: Item) => Made,
): Steps<Made[]> {
  const made: Made[] = [];
  for (const item of items) {
    made.push(make(item));
    yield;
  }
  return made;
}
