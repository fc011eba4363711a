/**
 * What has not changed since a block just behind the head is, after that block, what it is at the head:
 * a read of one key instead of a walk through its versions. Comparisons, clients of Rosetta and calls ask
 * for such blocks, mostly about accounts and slots that the blocks since left alone.
 */
import type { Height } from "../../chain/hex.js";

/** Keys in memory: some 30 MB with those of slots, and the changes of three full blocks at least. */
const MAX_KEYS = 131_072;

/** Which accounts and slots changed lately, and when they did last. */
export class UnchangedKeys {
  /** Heights by key; what changed the longest ago comes first. */
  private readonly changedAt = new Map<string, Height>();

  /**
   * @param knownSince height of the head: what changed up to it is not known
   * @param maxKeys most keys in memory
   */
  constructor(
    private knownSince: Height,
    private readonly maxKeys: number = MAX_KEYS,
  ) {}

  /** A block changed it; blocks come in their order. */
  note(key: string, height: Height): void {
    this.changedAt.delete(key);
    this.changedAt.set(key, height);
    if (this.changedAt.size <= this.maxKeys) return;
    for (const [oldest, at] of this.changedAt) {
      this.changedAt.delete(oldest);
      // Of what changed behind that block nothing is forgotten yet.
      this.knownSince = Math.max(this.knownSince, at);
      return;
    }
  }

  /** Whether no block behind this one changed it; false as well where that is not known. */
  isUnchangedSince(key: string, height: Height): boolean {
    return height >= this.knownSince && (this.changedAt.get(key) ?? height) <= height;
  }
}
