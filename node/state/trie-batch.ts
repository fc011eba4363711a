/** A batch of updates of a trie: what it says, and its order. */
import type { Steps } from "../../chain/steps/steps.js";
import { TrieError } from "./trie-nodes.js";

/** One key's new value. */
export interface TrieUpdate {
  /** 32 bytes, already hashed by the caller. */
  readonly key: Uint8Array;
  /** RLP of the value, never empty; undefined deletes. */
  readonly value: Uint8Array | undefined;
  /** Whether the flat state had a value; where it is given and put, the trie must agree. */
  readonly existed?: boolean;
  /**
   * RLP of the value that the flat state had: a leaf that is not at hand is made from it, which costs
   * less than reading it, and believed where its hash is the one in its parent.
   */
  readonly former?: () => Uint8Array;
}

/** Bytes of every key. */
export const TRIE_KEY_BYTES = 32;

/** Updates of one step: some tenths of a millisecond. */
export const UPDATES_PER_STEP = 32;

/**
 * Sorts a batch: keys are hashes, so their first bytes divide a large one evenly.
 * @throws INVALID_TRIE_UPDATE
 */
export function* sortSteps(updates: readonly TrieUpdate[]): Steps<readonly TrieUpdate[]> {
  for (const { key, value } of updates) {
    if (key.length !== TRIE_KEY_BYTES || value?.length === 0) {
      throw new TrieError("INVALID_TRIE_UPDATE", "a key has 32 bytes and a value is never empty");
    }
  }
  const sorted: TrieUpdate[] = [];
  for (const bucket of bucketsOf(updates)) {
    bucket.sort((left, right) => compareKeys(left.key, right.key));
    for (const update of bucket) {
      const last = sorted.at(-1);
      if (last !== undefined && compareKeys(last.key, update.key) === 0) {
        throw new TrieError("INVALID_TRIE_UPDATE", "a batch names one key twice");
      }
      sorted.push(update);
    }
    yield;
  }
  return sorted;
}

/** A small batch whole, as most contracts have; a large one by the first bytes of its keys. */
function bucketsOf(updates: readonly TrieUpdate[]): TrieUpdate[][] {
  if (updates.length <= UPDATES_PER_STEP) return [[...updates]];
  const buckets: TrieUpdate[][] = Array.from({ length: 256 }, () => []);
  for (const update of updates) buckets[update.key[0] ?? 0]?.push(update);
  return buckets;
}

/** In JavaScript on purpose: keys mostly differ in their first bytes, a native call costs more. */
export function compareKeys(left: Uint8Array, right: Uint8Array): number {
  for (let index = 0; index < TRIE_KEY_BYTES; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
