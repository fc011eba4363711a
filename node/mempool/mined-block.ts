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

/** What the pool has to forget of one block. */
export class MinedBlock {
  /** What became of an entry that the pool has taken out. */
  readonly removal: (item: RemovedEntry) => Removal;
  /** Resolves when the pool has let go of them all, by `end`. */
  readonly ended: Promise<void>;
  private resolveEnded: () => void = () => undefined;

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

  /** How many are still in the pool's contents. */
  countIn(contents: PoolContents): number {
    let count = 0;
    for (const hash of this.transactions.keys()) if (contents.get(hash) !== undefined) count += 1;
    return count;
  }

  has(hash: Hash32): boolean {
    return this.transactions.has(hash);
  }

  /** Those that are not of this block. */
  without(entries: readonly PoolEntry[]): PoolEntry[] {
    return entries.filter(({ tx }) => !this.transactions.has(tx.hash));
  }
}
