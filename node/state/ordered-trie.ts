/** Roots of a block's ordered lists (transactions, receipts): tries from rlp(index) to the item. */
import { keccak256Hex } from "../../chain/hashes.js";
import { EMPTY_TRIE_ROOT, type Hash32 } from "../../chain/hex.js";
import { encodeRlp } from "../../chain/encoding/rlp-writer.js";
import { allAtOnce, type Steps } from "../../chain/steps/steps.js";
import { buildSteps, itemAt, type TrieEntry } from "./trie-build.js";

/** A step for each would cost more than most entries do. */
const ENTRIES_PER_STEP = 16;

/**
 * Root of the trie from rlp(index) to the values; EMPTY_TRIE_ROOT for none.
 * @param values each one's consensus encoding (EIP-2718), not empty, in block order
 */
export function orderedTrieRoot(values: readonly Uint8Array[]): Hash32 {
  return allAtOnce(orderedTrieSteps(values));
}

/** The same in steps. */
export function* orderedTrieSteps(values: readonly Uint8Array[]): Steps<Hash32> {
  if (values.length === 0) return EMPTY_TRIE_ROOT;
  // As bytes, rlp(1) to rlp(127) = 0x01..0x7f come before rlp(0) = 0x80, the longer ones after it
  // in their own order; and none is a prefix of another.
  const singles = Math.min(values.length - 1, 127);
  const entries: TrieEntry[] = [];
  for (let index = 1; index <= singles; index++) entries.push(entryOf(values, index));
  entries.push(entryOf(values, 0));
  for (let index = 128; index < values.length; index++) {
    entries.push(entryOf(values, index));
    if (index % ENTRIES_PER_STEP === 0) yield;
  }
  return keccak256Hex(yield* buildSteps(entries, 0, entries.length, 0, undefined));
}

function entryOf(values: readonly Uint8Array[], index: number): TrieEntry {
  return { key: encodeRlp(index), value: itemAt(values, index) };
}
