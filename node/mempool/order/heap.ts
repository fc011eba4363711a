/** A binary heap: the first of its items is at hand, the others are in no order. */

/** Items of which one precedes the other, or neither does. */
export class Heap<Item extends object> {
  /** @param items what it begins with; they become the heap's own */
  constructor(
    private readonly precedes: (left: Item, right: Item) => boolean,
    private readonly items: Item[] = [],
  ) {
    for (let index = (items.length >> 1) - 1; index >= 0; index--) this.sink(index);
  }

  get size(): number {
    return this.items.length;
  }

  /** One that no other precedes; undefined when the heap is empty. */
  get first(): Item | undefined {
    return this.items[0];
  }

  /** Adds an item. */
  push(item: Item): void {
    this.items.push(item);
    let index = this.items.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.swapIfBefore(index, parent)) return;
      index = parent;
    }
  }

  /** Takes the first one out. */
  pop(): Item | undefined {
    const first = this.items[0];
    const last = this.items.pop();
    if (last !== undefined && this.items.length > 0) {
      this.items[0] = last;
      this.sink(0);
    }
    return first;
  }

  private sink(start: number): void {
    let index = start;
    for (;;) {
      let best = index;
      for (const child of [2 * index + 1, 2 * index + 2]) {
        if (this.isBefore(child, best)) best = child;
      }
      if (best === index) return;
      this.swapIfBefore(best, index);
      index = best;
    }
  }

  private isBefore(index: number, other: number): boolean {
    const left = this.items[index];
    const right = this.items[other];
    return left !== undefined && right !== undefined && this.precedes(left, right);
  }

  private swapIfBefore(index: number, other: number): boolean {
    const left = this.items[index];
    const right = this.items[other];
    if (left === undefined || right === undefined) return false;
    if (!this.precedes(left, right)) return false;
    this.items[index] = right;
    this.items[other] = left;
    return true;
  }
}
