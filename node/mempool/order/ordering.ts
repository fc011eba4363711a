/**
 * The order in which transactions are offered to a block: the best effective price between
 * senders, the nonce within one, earlier receipt where prices are equal. Built at block time from
 * one entry per sender (10,000 senders: some 10 ms) and drained lazily.
 */
import type { Address } from "../../../chain/address.js";
import type { BlockLimits } from "../../blocks/block-pool.js";
import { BlockRoom, type TakenRoom, type UsedRoom } from "../../blocks/block-room.js";
import type { PendingTransaction } from "../../view/event-bus.js";
import type { PoolEntry } from "./pool-entry.js";
import type { SenderQueue } from "./sender-queue.js";

/**
 * Most that the SDK transaction adds to the raw bytes: type URLs, sender, fee amount, gas limit
 * and their protobuf tags. A test holds it against the encoder.
 */
export const SDK_OVERHEAD_BYTES = 320;

interface Head {
  readonly entry: PoolEntry;
  readonly queue: SenderQueue;
}

/** True when `left` goes before `right`. */
function precedes(left: PoolEntry, right: PoolEntry): boolean {
  if (left.priceAtoken !== right.priceAtoken) return left.priceAtoken > right.priceAtoken;
  return left.sequence < right.sequence;
}

/** Binary heap of the senders' next entries; the best is on top. */
class HeadHeap {
  constructor(private readonly heads: Head[]) {
    for (let index = (heads.length >> 1) - 1; index >= 0; index--) this.sink(index);
  }

  push(head: Head): void {
    this.heads.push(head);
    let index = this.heads.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.swapIfBefore(index, parent)) return;
      index = parent;
    }
  }

  pop(): Head | undefined {
    const top = this.heads[0];
    const last = this.heads.pop();
    if (last !== undefined && this.heads.length > 0) {
      this.heads[0] = last;
      this.sink(0);
    }
    return top;
  }

  private sink(start: number): void {
    let index = start;
    for (;;) {
      let best = index;
      for (const child of [2 * index + 1, 2 * index + 2]) {
        if (this.before(child, best)) best = child;
      }
      if (best === index) return;
      this.swapIfBefore(best, index);
      index = best;
    }
  }

  private before(index: number, other: number): boolean {
    const left = this.heads[index];
    const right = this.heads[other];
    return left !== undefined && right !== undefined && precedes(left.entry, right.entry);
  }

  private swapIfBefore(index: number, other: number): boolean {
    const left = this.heads[index];
    const right = this.heads[other];
    if (left === undefined || right === undefined) return false;
    if (!precedes(left.entry, right.entry)) return false;
    this.heads[index] = right;
    this.heads[other] = left;
    return true;
  }
}

/**
 * Offers the pool's executable transactions to one block without removing them. The pool may
 * change between the calls; senders that come later wait for the next block.
 */
export class BlockSelection {
  private readonly heap: HeadHeap;
  private readonly skipped = new Set<Address>();
  private readonly room: BlockRoom;
  private last: { readonly head: Head; readonly room: TakenRoom } | undefined;

  constructor(senders: Iterable<SenderQueue>, limits: BlockLimits) {
    const heads: Head[] = [];
    for (const queue of senders) {
      const entry = queue.executable(queue.bounds.firstNonce);
      if (entry !== undefined) heads.push({ entry, queue });
    }
    this.heap = new HeadHeap(heads);
    this.room = new BlockRoom(limits);
  }

  /**
   * The best transaction that fits, or undefined when there is none. Its gas limit and bytes are
   * taken from the room that is left; `executed` gives unused gas back. A sender whose next
   * transaction does not fit is out for this block, because its later ones cannot go first.
   */
  next(): PendingTransaction | undefined {
    this.advanceLast();
    while (!this.room.isFull) {
      const head = this.heap.pop();
      if (head === undefined) return undefined;
      const { entry, queue } = head;
      if (this.skipped.has(entry.from)) continue;
      const current = queue.executable(entry.tx.nonce);
      if (current !== entry) {
        // Replaced since the heap was built: the new one takes its turn by its own price.
        if (current !== undefined) this.heap.push({ entry: current, queue });
        continue;
      }
      if (this.reserve(head)) return entry;
    }
    return undefined;
  }

  /** Once after `next`: what the transaction really used; the rest is free again. */
  executed(used: UsedRoom): void {
    this.last?.room.executed(used);
  }

  /** Compute units that the block has left. */
  get computeLeftNs(): number {
    return this.room.computeLeftNs;
  }

  /** The sender's transaction was not taken: nothing more of the sender in this block. */
  skipSender(address: Address): void {
    this.skipped.add(address);
    if (this.last?.head.entry.from !== address) return;
    this.last.room.giveBack();
    this.last = undefined;
  }

  private advanceLast(): void {
    if (this.last === undefined) return;
    const { entry, queue } = this.last.head;
    this.last = undefined;
    const successor = queue.executable(entry.tx.nonce + 1n);
    if (successor !== undefined) this.heap.push({ entry: successor, queue });
  }

  private reserve(head: Head): boolean {
    const { tx, sizeBytes } = head.entry;
    const room = this.room.take({
      gasLimit: tx.gasLimit,
      sizeBytes: sizeBytes + SDK_OVERHEAD_BYTES,
    });
    if (room === undefined) return false;
    this.last = { head, room };
    return true;
  }
}
