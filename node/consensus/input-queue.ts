/**
 * What waits for consensus: this node's own items first and in their order, then one item of each
 * peer in turns, every second one of a peer that has been of use: a liar may have any number of
 * keys, but none of them says what is true and new. What a peer may leave waiting is bounded; when
 * all of it is too much, the peer with most loses its newest.
 */

/** Bounds of what peers may leave waiting, bytes (or what bytes stand for). */
export interface QueueLimits {
  readonly maxPeerBytes: number;
  readonly maxBytes: number;
}

interface Waiting<T> {
  readonly item: T;
  readonly sizeBytes: number;
}

interface Lane<T> {
  readonly items: Waiting<T>[];
  sizeBytes: number;
}

/** A queue with one reader. */
export class InputQueue<T extends object> {
  private own: T[] = [];
  /** Peers with something waiting; whose turn it is comes first. */
  private readonly lanes = {
    useful: new Map<string, Lane<T>>(),
    others: new Map<string, Lane<T>>(),
  };
  private isOthersTurn = false;
  private sizeBytes = 0;
  private wake: (() => void) | undefined;

  /**
   * @param ports.isUseful whether the peer said something new lately
   * @param ports.onDropped told of an item that waited and had to make room
   */
  constructor(
    private readonly limits: QueueLimits,
    private readonly ports: {
      readonly isUseful: (peer: string) => boolean;
      readonly onDropped: (item: T) => void;
    },
  ) {}

  /** Adds an item of a peer unless that has too much here already; whether it was added. */
  offer(item: T, from: { readonly peer: string; readonly sizeBytes: number }): boolean {
    const { peer, sizeBytes } = from;
    const { useful, others } = this.lanes;
    const lanes = useful.has(peer) || this.ports.isUseful(peer) ? useful : others;
    const lane = others.get(peer) ?? useful.get(peer) ?? { items: [], sizeBytes: 0 };
    if (lane.sizeBytes + sizeBytes > this.limits.maxPeerBytes) return false;
    if (!this.makeRoom(sizeBytes, lane)) return false;
    lane.items.push({ item, sizeBytes });
    lane.sizeBytes += sizeBytes;
    this.sizeBytes += sizeBytes;
    if (lanes === useful) others.delete(peer);
    lanes.set(peer, lane);
    this.wake?.();
    return true;
  }

  /** Adds an item that this node made itself. */
  push(item: T): void {
    this.own.push(item);
    this.wake?.();
  }

  /** Takes all that a peer has waiting. */
  remove(peer: string): T[] {
    const removed: T[] = [];
    for (const lanes of [this.lanes.useful, this.lanes.others]) {
      const lane = lanes.get(peer);
      if (lane === undefined) continue;
      lanes.delete(peer);
      this.sizeBytes -= lane.sizeBytes;
      removed.push(...lane.items.map(({ item }) => item));
    }
    return removed;
  }

  /** Takes everything that waits, in the order in which `next` would give it. */
  drain(): T[] {
    const items: T[] = [];
    for (let item = this.take(); item !== undefined; item = this.take()) items.push(item);
    return items;
  }

  /** The next item; waits for it. Rejects with the signal's reason. */
  async next(signal: AbortSignal): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      const item = this.take();
      if (item !== undefined) return item;
      await this.filled(signal);
    }
  }

  private take(): T | undefined {
    const own = this.own.shift();
    if (own !== undefined) return own;
    const { useful, others } = this.lanes;
    this.isOthersTurn = !this.isOthersTurn;
    const [first, second] = this.isOthersTurn ? [useful, others] : [others, useful];
    return this.takeTurn(first) ?? this.takeTurn(second);
  }

  private takeTurn(lanes: Map<string, Lane<T>>): T | undefined {
    for (const [peer, lane] of lanes) {
      const first = lane.items.shift();
      // The turn goes to the next peer; this one comes last, if it has more.
      lanes.delete(peer);
      if (first === undefined) continue;
      lane.sizeBytes -= first.sizeBytes;
      this.sizeBytes -= first.sizeBytes;
      if (lane.items.length > 0) lanes.set(peer, lane);
      return first.item;
    }
    return undefined;
  }

  /** Drops the newest items of whoever has most, unless that is who wants the room. */
  private makeRoom(sizeBytes: number, lane: Lane<T>): boolean {
    while (this.sizeBytes + sizeBytes > this.limits.maxBytes) {
      const largest = this.largest(lane);
      const dropped = largest === lane ? undefined : largest.items.pop();
      if (dropped === undefined) return false;
      largest.sizeBytes -= dropped.sizeBytes;
      this.sizeBytes -= dropped.sizeBytes;
      this.ports.onDropped(dropped.item);
    }
    return true;
  }

  private largest(lane: Lane<T>): Lane<T> {
    let largest = lane;
    for (const lanes of [this.lanes.useful, this.lanes.others]) {
      for (const other of lanes.values()) {
        if (other.sizeBytes > largest.sizeBytes) largest = other;
      }
    }
    return largest;
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
