/** Remembers what became of the last transactions that left the pool without being mined. */
import type { Hash32 } from "../../chain/hex.js";
import type { PoolEntry } from "./order/pool-entry.js";
import type { PoolOutcome } from "./sender-draft.js";

/** A fate as it is kept, by the transaction's own hash: of an EVM transaction with the other one. */
export type KeptOutcome = PoolOutcome & {
  /** SHA-256 of the SDK Tx around it: what the interfaces of consensus answer. */
  readonly sdkHash?: Hash32;
};

/** What is to be kept of a transaction's fate. */
export function keptOutcome(
  { tx, sdkHash }: { readonly tx: Pick<PoolEntry["tx"], "hash">; readonly sdkHash: Hash32 },
  outcome: PoolOutcome,
): KeptOutcome {
  return sdkHash === tx.hash ? outcome : { ...outcome, sdkHash };
}

/** Bounded map from hash to fate; the oldest are forgotten first. */
export class OutcomeHistory {
  /** By the transactions' own hashes. */
  private readonly outcomes = new Map<Hash32, KeptOutcome>();
  /** Own hashes by the others, of all that have another. */
  private readonly ownHashes = new Map<Hash32, Hash32>();

  constructor(private readonly capacity: number) {}

  /** By either hash; undefined for one that a block has meanwhile. */
  get(hash: Hash32, mined?: { has(ownHash: Hash32): boolean }): PoolOutcome | undefined {
    const ownHash = this.ownHashes.get(hash) ?? hash;
    const kept = mined?.has(ownHash) === true ? undefined : this.outcomes.get(ownHash);
    if (kept === undefined) return undefined;
    const { sdkHash: _sdkHash, ...outcome } = kept;
    return outcome;
  }

  /** Those of these own hashes that are known. */
  outcomesOf(hashes: Iterable<Hash32>): ReadonlyMap<Hash32, KeptOutcome> {
    const known = new Map<Hash32, KeptOutcome>();
    for (const hash of hashes) {
      const outcome = this.outcomes.get(hash);
      if (outcome !== undefined) known.set(hash, outcome);
    }
    return known;
  }

  /** @param hash the transaction's own */
  set(hash: Hash32, outcome: KeptOutcome): void {
    this.delete(hash);
    this.outcomes.set(hash, outcome);
    if (outcome.sdkHash !== undefined) this.ownHashes.set(outcome.sdkHash, hash);
    if (this.outcomes.size <= this.capacity) return;
    const oldest = this.outcomes.keys().next();
    if (oldest.done !== true) this.delete(oldest.value);
  }

  /** Forgets one, by its own hash, that came back or was mined after all. */
  delete(hash: Hash32): void {
    const sdkHash = this.outcomes.get(hash)?.sdkHash;
    this.outcomes.delete(hash);
    if (sdkHash !== undefined) this.ownHashes.delete(sdkHash);
  }
}
