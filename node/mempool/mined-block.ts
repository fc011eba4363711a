/**
 * Transactions of a block that is the head already, as long as the pool still lets go of them: the
 * pool takes them out sender by sender, and until then nobody must see them as pending.
 */
import type { Hash32 } from "../../chain/hex.js";
import type { MinedTransaction } from "../blocks/block-pool.js";
import type { PoolContents } from "./pool-contents.js";
import type { PoolEntry } from "./pool-entry.js";
import { type Removal, removalOf } from "./removal.js";
import type { RemovedEntry } from "./sender-draft.js";

/** What the pool has to forget of one block. */
export class MinedBlock {
  private readonly hashes: ReadonlySet<Hash32>;
  private readonly resolve: (item: RemovedEntry) => Removal;
  private left = 0;

  /** @param isMined whether the chain's index knows a hash */
  constructor(
    transactions: readonly MinedTransaction[],
    contents: PoolContents,
    isMined: (hash: Hash32) => boolean,
  ) {
    this.hashes = new Set(transactions.map(({ hash }) => hash));
    this.resolve = removalOf(transactions, this.hashes, isMined);
    for (const hash of this.hashes) if (contents.get(hash) !== undefined) this.left += 1;
  }

  /** Those that are still in the pool's contents. */
  get leftCount(): number {
    return this.left;
  }

  has(hash: Hash32): boolean {
    return this.hashes.has(hash);
  }

  /** What became of an entry that the pool has taken out. */
  removal(item: RemovedEntry): Removal {
    if (this.hashes.has(item.entry.tx.hash)) this.left -= 1;
    return this.resolve(item);
  }

  /** Those that are not of this block. */
  without(entries: readonly PoolEntry[]): PoolEntry[] {
    return entries.filter(({ tx }) => !this.hashes.has(tx.hash));
  }
}
