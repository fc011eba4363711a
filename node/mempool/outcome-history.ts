/** Remembers what became of the last transactions that left the pool without being mined. */
import type { Hash32 } from "../../chain/hex.js";
import type { PoolOutcome } from "./sender-draft.js";

/** Bounded map from hash to fate; the oldest are forgotten first. */
export class OutcomeHistory {
  private readonly outcomes = new Map<Hash32, PoolOutcome>();

  constructor(private readonly capacity: number) {}

  get(hash: Hash32): PoolOutcome | undefined {
    return this.outcomes.get(hash);
  }

  /** Those of these hashes that are known. */
  outcomesOf(hashes: Iterable<Hash32>): ReadonlyMap<Hash32, PoolOutcome> {
    const known = new Map<Hash32, PoolOutcome>();
    for (const hash of hashes) {
      const outcome = this.outcomes.get(hash);
      if (outcome !== undefined) known.set(hash, outcome);
    }
    return known;
  }

  set(hash: Hash32, outcome: PoolOutcome): void {
    this.outcomes.delete(hash);
    this.outcomes.set(hash, outcome);
    if (this.outcomes.size <= this.capacity) return;
    const oldest = this.outcomes.keys().next();
    if (oldest.done !== true) this.outcomes.delete(oldest.value);
  }

  /** Forgets a hash that came back or was mined after all. */
  delete(hash: Hash32): void {
    this.outcomes.delete(hash);
  }
}
