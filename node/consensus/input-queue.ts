/** What waits for consensus: handled one after the other, bounded for what peers send. */

/** A queue with one reader. */
export class InputQueue<T extends object> {
  private items: { readonly item: T; readonly weight: number }[] = [];
  private weight = 0;
  private wake: (() => void) | undefined;

  /** @param maxWeight bound for `offer`; `push` is for what this node makes itself */
  constructor(private readonly maxWeight: number) {}

  /** Adds an item unless the queue is full; whether it was added. */
  offer(item: T, weight: number): boolean {
    if (this.weight + weight > this.maxWeight) return false;
    this.put(item, weight);
    return true;
  }

  /** Adds an item. */
  push(item: T): void {
    this.put(item, 0);
  }

  private put(item: T, weight: number): void {
    this.items.push({ item, weight });
    this.weight += weight;
    this.wake?.();
  }

  /** Takes everything that waits. */
  drain(): T[] {
    const items = this.items.map(({ item }) => item);
    this.items = [];
    this.weight = 0;
    return items;
  }

  /** The next item, in order; waits for it. Rejects with the signal's reason. */
  async next(signal: AbortSignal): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      const first = this.items.shift();
      if (first !== undefined) {
        this.weight -= first.weight;
        return first.item;
      }
      await this.filled(signal);
    }
  }

  private async filled(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const onAbort = () => resolve();
      this.wake = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      signal.addEventListener("abort", onAbort, { once: true });
    });
    this.wake = undefined;
  }
}
