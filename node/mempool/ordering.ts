/**
 * The order in which transactions are offered to a block: the best effective price between
 * senders, the nonce within one, earlier receipt where prices are equal. Built at block time from
 * one entry per sender (10,000 senders: some 10 ms) and drained lazily.
 */
import type { Address } from "../../chain/address.js";
import type { SignedTransaction } from "../../chain/transaction.js";
import type { PendingTransaction } from "../event-bus.js";
import type { PoolEntry } from "./pool-entry.js";
import type { SenderQueue } from "./sender-queue.js";

/** What a block has room for (D21). */
export interface BlockLimits {
  readonly maxGas: bigint;
  /** Part of `maxGas` that transactions entering code may take. */
  readonly maxCallGas: bigint;
  /** Bytes of the SDK transactions in `data.txs`; at least MAX_TRANSACTION_BYTES + overhead. */
  readonly maxBytes: number;
  /** Asked when the transaction is next in turn, against the state of the block being built. */
  entersCode(tx: SignedTransaction): boolean;
}

/**
 * Most that the SDK transaction adds to the raw bytes: type URLs, sender, fee amount, gas limit
 * and their protobuf tags. A test holds it against the encoder.
 */
export const SDK_OVERHEAD_BYTES = 320;

/** No transaction takes less; below it the block is full. */
const LEAST_GAS = 21_000n;

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
  private last: { head: Head; call: boolean; reservedGas: bigint } | undefined;
  private gasLeft: bigint;
  private callGasLeft: bigint;
  private bytesLeft: number;

  /**
   * @param onTooLarge told of transactions that not even an empty block could hold
   */
  constructor(
    senders: Iterable<SenderQueue>,
    private readonly limits: BlockLimits,
    private readonly onTooLarge: (entry: PoolEntry) => void,
  ) {
    const heads: Head[] = [];
    for (const queue of senders) {
      const entry = queue.executable(queue.bounds.firstNonce);
      if (entry !== undefined) heads.push({ entry, queue });
    }
    this.heap = new HeadHeap(heads);
    this.gasLeft = limits.maxGas;
    this.callGasLeft = limits.maxCallGas;
    this.bytesLeft = limits.maxBytes;
  }

  /**
   * The best transaction that fits, or undefined when there is none. Its gas limit and bytes are
   * taken from the room that is left; `executed` gives unused gas back. A sender whose next
   * transaction does not fit is out for this block, because its later ones cannot go first.
   */
  next(): PendingTransaction | undefined {
    this.advanceLast();
    while (this.gasLeft >= LEAST_GAS) {
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

  /** Optional, once after `next`: gas that the transaction really used; the rest is free again. */
  executed(gasUsed: bigint): void {
    if (this.last === undefined) return;
    this.release(this.last.reservedGas - gasUsed);
    this.last.reservedGas = gasUsed;
  }

  /** The sender's transaction was not taken: nothing more of the sender in this block. */
  skipSender(address: Address): void {
    this.skipped.add(address);
    if (this.last?.head.entry.from !== address) return;
    this.release(this.last.reservedGas);
    this.bytesLeft += this.last.head.entry.sizeBytes + SDK_OVERHEAD_BYTES;
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
    const { entry } = head;
    const { gasLimit } = entry.tx;
    const bytes = entry.sizeBytes + SDK_OVERHEAD_BYTES;
    if (gasLimit > this.gasLeft || bytes > this.bytesLeft) {
      if (gasLimit > this.limits.maxGas || bytes > this.limits.maxBytes) this.onTooLarge(entry);
      return false;
    }
    const call = this.limits.entersCode(entry.tx);
    if (call && gasLimit > this.callGasLeft) {
      if (gasLimit > this.limits.maxCallGas) this.onTooLarge(entry);
      return false;
    }
    this.gasLeft -= gasLimit;
    if (call) this.callGasLeft -= gasLimit;
    this.bytesLeft -= bytes;
    this.last = { head, call, reservedGas: gasLimit };
    return true;
  }

  private release(gas: bigint): void {
    if (this.last === undefined) return;
    this.gasLeft += gas;
    if (this.last.call) this.callGasLeft += gas;
  }
}
