/**
 * The order in which transactions are offered to a block: the best effective price between
 * senders, the nonce within one, earlier receipt where prices are equal. Built at block time from
 * one entry per sender (10,000 senders: some 10 ms) and drained lazily.
 */
import type { Address } from "../../../chain/address.js";
import type { BlockLimits } from "../../blocks/block-pool.js";
import { BlockRoom, type TakenRoom, type UsedRoom } from "../../blocks/block-room.js";
import type { PendingTransaction } from "../../view/event-bus.js";
import { Heap } from "./heap.js";
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

/** Whether one is offered before the other. */
function precedes({ entry: left }: Head, { entry: right }: Head): boolean {
  if (left.priceAtoken !== right.priceAtoken) return left.priceAtoken > right.priceAtoken;
  return left.sequence < right.sequence;
}

/**
 * Offers the pool's executable transactions to one block without removing them. The pool may
 * change between the calls; senders that come later wait for the next block.
 */
export class BlockSelection {
  /** The senders' next entries; the best is first. */
  private readonly heap: Heap<Head>;
  private readonly skipped = new Set<Address>();
  private readonly room: BlockRoom;
  private last: { readonly head: Head; readonly room: TakenRoom } | undefined;

  constructor(senders: Iterable<SenderQueue>, limits: BlockLimits) {
    const heads: Head[] = [];
    for (const queue of senders) {
      const entry = queue.executable(queue.bounds.firstNonce);
      if (entry !== undefined) heads.push({ entry, queue });
    }
    this.heap = new Heap(precedes, heads);
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
