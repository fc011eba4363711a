/** Tells what became of transactions that leave the pool. */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import type { MinedTransaction } from "../blocks/block-pool.js";
import type { PoolOutcome, RemovedEntry } from "./sender-draft.js";

/** What to remember and do about a removed transaction. */
export interface Removal {
  /** Undefined when it was mined: the chain's index tells where. */
  readonly outcome: PoolOutcome | undefined;
  /** True when the block's own write deleted the journal entry. */
  readonly unjournalled: boolean;
}

/**
 * Resolver for one change of the pool.
 * @param mined transactions of the block that caused it, empty when none did
 * @param isMined whether the chain's index knows the hash
 */
export function removalOf(
  mined: ReadonlyMap<Hash32, MinedTransaction>,
  isMined: (hash: Hash32) => boolean,
): (item: RemovedEntry) => Removal {
  let byNonce: Map<string, Hash32> | undefined;
  const rivalOf = (from: Address, nonce: bigint): Hash32 | undefined => {
    // Built only when needed: a pool that feeds its own blocks has no rivals.
    byNonce ??= new Map(
      [...mined.values()].map((item) => [`${item.from}:${item.nonce}`, item.hash]),
    );
    return byNonce.get(`${from}:${nonce}`);
  };
  return ({ entry, outcome }) => {
    const { hash, nonce } = entry.tx;
    if (mined.has(hash)) return { outcome: undefined, unjournalled: true };
    if (outcome !== "passed") return { outcome, unjournalled: false };
    if (isMined(hash)) return { outcome: undefined, unjournalled: false };
    const by = rivalOf(entry.from, nonce);
    if (by !== undefined) return { outcome: { status: "replaced", by }, unjournalled: false };
    const reason = `nonce too low: nonce ${nonce} was used by another transaction`;
    return { outcome: { status: "dropped", reason }, unjournalled: false };
  };
}
