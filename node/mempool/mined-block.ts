/**
 * Transactions of a block that is the head already, as long as the pool still lets go of them: the
 * pool takes them out sender by sender, and until then nobody must see them as pending.
 */
import type { Hash32 } from "../../chain/hex.js";
import type { MinedTransaction } from "../blocks/block-pool.js";
import type { PoolContents } from "./pool-contents.js";
import type { PoolEntry } from "./order/pool-entry.js";
import { type Removal, removalOf } from "./removal.js";
import type { RemovedEntry } from "./sender-draft.js";

/** Transactions of the block that the pool still has, as it has them. */
export interface HeldOfBlock {
  readonly executable: Set<PoolEntry>;
  readonly queued: Set<PoolEntry>;
  /** Of the executable ones, as consensus carries them. */
  carriedBytes: number;
}

/** What the pool has to forget of one block. */
export class MinedBlock {
  /** What became of an entry that the pool has taken out. */
  readonly removal: (item: RemovedEntry) => Removal;
  /** Resolves when the pool has let go of them all, by `end`. */
  readonly ended: Promise<void>;
  private resolveEnded: () => void = () => undefined;
  /** Counted when somebody first asks: most blocks nobody asks about in the turns that this takes. */
  private held: HeldOfBlock | undefined;

  /** @param isMined whether the chain's index knows a hash */
  constructor(
    private readonly transactions: ReadonlyMap<Hash32, MinedTransaction>,
    isMined: (hash: Hash32) => boolean,
  ) {
    this.removal = removalOf(transactions, isMined);
    this.ended = new Promise((resolve) => {
      this.resolveEnded = resolve;
    });
  }

  end(): void {
    this.resolveEnded();
  }

  /** What of it is still in the pool's contents. */
  heldIn(contents: PoolContents): HeldOfBlock {
    if (this.held !== undefined) return this.held;
    const held = {
      executable: new Set<PoolEntry>(),
      queued: new Set<PoolEntry>(),
      carriedBytes: 0,
    };
    for (const hash of this.transactions.keys()) {
      const entry = contents.get(hash);
      if (entry === undefined) continue;
      const isExecutable = contents.isExecutable(entry);
      (isExecutable ? held.executable : held.queued).add(entry);
      if (isExecutable) held.carriedBytes += entry.carriedBytes;
    }
    this.held = held;
    return held;
  }

  /** The pool's contents have let go of one. */
  left(entry: PoolEntry): void {
    if (this.held === undefined) return;
    if (this.held.executable.delete(entry)) this.held.carriedBytes -= entry.carriedBytes;
    this.held.queued.delete(entry);
  }

  has(hash: Hash32): boolean {
    return this.transactions.has(hash);
  }

  /** Those that are not of this block. */
  without(entries: readonly PoolEntry[]): PoolEntry[] {
    return entries.filter(({ tx }) => !this.transactions.has(tx.hash));
  }
}
