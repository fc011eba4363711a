/** A fake clock with what is to happen on it. */

interface SimEvent {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** Events in the order of time; those of the same moment in the order in which they were put. */
export class EventQueue {
  nowMs = 0;
  private readonly events: SimEvent[] = [];
  private order = 0;

  /** Lets something happen after a while. */
  at(delayMs: number, run: () => void): void {
    const event = { atMs: this.nowMs + delayMs, order: this.order++, run };
    // Sorted from last to first; inserting by halves keeps long runs quick.
    let [low, high] = [0, this.events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.events[middle];
      const isLater =
        other !== undefined &&
        (other.atMs > event.atMs || (other.atMs === event.atMs && other.order > event.order));
      if (isLater) low = middle + 1;
      else high = middle;
    }
    this.events.splice(low, 0, event);
  }

  /** Moves the clock to the next event and lets it happen; false when there is none. */
  step(): boolean {
    const next = this.events.pop();
    if (next === undefined) return false;
    this.nowMs = next.atMs;
    next.run();
    return true;
  }
}
