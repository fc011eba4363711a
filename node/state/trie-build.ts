/** Builds a subtree from sorted entries where none was; shared by updates and block roots. */
import { Slab } from "../../chain/encoding/slab.js";
import { allAtOnce, type Steps } from "../../chain/steps/steps.js";
import {
  branchOffsets,
  childPath,
  EMPTY_BRANCH,
  encodeBranch,
  encodeExtension,
  encodeLeaf,
  nibbleAt,
  nibblesOf,
  TrieError,
} from "./trie-nodes.js";

/** A key with its value's bytes. */
export interface TrieEntry {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** Hears of a node and its path. */
export type EmitNode = (path: Uint8Array, node: Uint8Array) => void;

const EMPTY_OFFSETS = branchOffsets(EMPTY_BRANCH);

/**
 * Branches of which only the root is wanted. All others are kept one by one, in the cache of nodes: of a
 * slab most are replaced with the next block, and the few that stay would keep all of it.
 */
const DROPPED = new Slab();

/**
 * RLP of the node that holds `entries[from..to)`, which share their first `depth` nibbles.
 * @param entries sorted by key, keys unique, none a prefix of another
 * @param emit hears of every node below the returned one (embedded ones too), with its path;
 * undefined where only the root matters
 */
export function buildTrie(
  entries: readonly TrieEntry[],
  from: number,
  to: number,
  depth: number,
  emit: EmitNode | undefined,
): Uint8Array {
  return allAtOnce(buildSteps(entries, from, to, depth, emit));
}

/** The same in steps of a few entries each. */
export function* buildSteps(
  entries: readonly TrieEntry[],
  from: number,
  to: number,
  depth: number,
  emit: EmitNode | undefined,
): Steps<Uint8Array> {
  const slab = emit === undefined ? DROPPED : undefined;
  const first = itemAt(entries, from);
  if (to - from === 1) return encodeLeaf(first.key, depth, first.value);
  const split = partingDepth(first.key, itemAt(entries, to - 1).key, depth);
  const children: (Uint8Array | undefined)[] = [];
  let changed = 0;
  for (let start = from; start < to; ) {
    const nibble = nibbleAt(itemAt(entries, start).key, split);
    const end = groupEnd(entries, start, to, split);
    const { key, value } = itemAt(entries, start);
    // Most groups have one entry: its leaf needs no generator of its own.
    const child =
      end - start === 1
        ? encodeLeaf(key, split + 1, value)
        : yield* buildSteps(entries, start, end, split + 1, emit);
    emit?.(childPath(first.key, split, nibble), child);
    children[nibble] = child;
    changed |= 1 << nibble;
    start = end;
  }
  yield;
  const branch = encodeBranch(EMPTY_BRANCH, EMPTY_OFFSETS, changed, children, slab);
  if (split === depth) return branch;
  emit?.(nibblesOf(first.key, 0, split), branch);
  return encodeExtension(nibblesOf(first.key, depth, split), branch);
}

/** End of the run of items that have the same nibble at `depth` as the one at `start`. */
export function groupEnd(
  items: readonly { readonly key: Uint8Array }[],
  start: number,
  to: number,
  depth: number,
): number {
  const nibble = nibbleAt(itemAt(items, start).key, depth);
  let end = start + 1;
  while (end < to && nibbleAt(itemAt(items, end).key, depth) === nibble) end += 1;
  return end;
}

/** The item at an index that the caller knows to exist. Throws INVALID_TRIE_UPDATE if not. */
export function itemAt<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new TrieError("INVALID_TRIE_UPDATE", "no item at this index");
  return item;
}

/** The first depth at which two keys differ: of sorted entries, first and last tell for all. */
function partingDepth(left: Uint8Array, right: Uint8Array, depth: number): number {
  let at = depth;
  const limit = 2 * Math.min(left.length, right.length);
  while (at < limit && nibbleAt(left, at) === nibbleAt(right, at)) at += 1;
  if (at === limit) throw new TrieError("INVALID_TRIE_UPDATE", "a key is a prefix of another");
  return at;
}
