/**
 * Nodes of Merkle Patricia tries, worked on as their RLP bytes: a branch is patched by copying runs
 * of untouched children, so nothing is decoded into objects that an update does not change.
 * Layout (yellow paper, appendix D): a branch is a list of 16 child items and an empty value (keys
 * are never prefixes of each other here); a leaf is [compact path, value]; an extension is
 * [compact path, child item]. A child item is empty (0x80), the child's RLP itself where that is
 * shorter than 32 bytes, or 0xa0 and the child's keccak256.
 */
import { keccak256 } from "../../chain/hashes.js";
import { AppError } from "../../chain/errors.js";
import {
  encodeRlp,
  RLP_LIST,
  RLP_STRING,
  rlpSizeBytes,
  rlpStringSizeBytes,
  writeRlpHeader,
  writeRlpString,
} from "../../chain/encoding/rlp-writer.js";
import { Slab } from "../../chain/encoding/slab.js";

/** Codes of faults in tries and proofs. */
export type TrieErrorCode =
  /** A parent refers to a node that the reader does not hold: the store is incomplete. */
  | "TRIE_NODE_MISSING"
  /** The trie has a value where its flat counterpart had none, or the other way round. */
  | "TRIE_VALUE_MISMATCH"
  /** Stored bytes are no trie node, or not the one that the parent refers to. */
  | "INVALID_TRIE_NODE"
  /** A key without 32 bytes, an empty value, or one key twice in a batch. */
  | "INVALID_TRIE_UPDATE"
  /** A proof that does not lead from the root to the key's place. */
  | "INVALID_PROOF";

/** A broken trie, a misused update or a wrong proof; never retriable. */
export class TrieError extends AppError<TrieErrorCode> {}

/** From this size on a node is stored and referred to by hash; a smaller one is embedded. */
export const HASHED_NODE_BYTES = 32;

/** First byte of an empty child item. */
export const EMPTY_ITEM = 0x80;

/** First byte of a child item that holds a hash. */
export const HASH_ITEM = 0xa0;

/** Bytes of a child item that holds a hash. */
const HASH_ITEM_BYTES = 33;

/** Children of a branch. */
export const BRANCH_WIDTH = 16;

/** A branch without children: what new branches are patched from. Never stored. */
export const EMPTY_BRANCH = encodeRlp(
  Array.from({ length: BRANCH_WIDTH + 1 }, () => new Uint8Array(0)),
);

/** A leaf or an extension, taken apart. */
export interface ShortNode {
  readonly isLeaf: boolean;
  /** The path below the node's own place, one nibble per byte. */
  readonly nibbles: Uint8Array;
  /** A leaf's value, or an extension's child item as encoded. */
  readonly content: Uint8Array;
}

/** The nibble (0-15) of a key at a depth counted in nibbles. */
export function nibbleAt(key: Uint8Array, depth: number): number {
  const byte = key[depth >>> 1] ?? 0;
  return (depth & 1) === 0 ? byte >>> 4 : byte & 15;
}

/** Nibbles `from` (inclusive) to `to` (exclusive) of a key, one per byte. */
export function nibblesOf(key: Uint8Array, from: number, to: number): Uint8Array {
  const nibbles = new Uint8Array(to - from);
  for (let depth = from; depth < to; depth++) nibbles[depth - from] = nibbleAt(key, depth);
  return nibbles;
}

/** Path of a branch's child: the first `depth` nibbles of a key under the branch, then `nibble`. */
export function childPath(key: Uint8Array, depth: number, nibble: number): Uint8Array {
  const path = new Uint8Array(depth + 1);
  for (let index = 0; index < depth; index++) path[index] = nibbleAt(key, index);
  path[depth] = nibble;
  return path;
}

/** Two nibble paths, one after the other. */
export function joinNibbles(left: Uint8Array, right: Uint8Array): Uint8Array {
  const joined = new Uint8Array(left.length + right.length);
  joined.set(left);
  joined.set(right, left.length);
  return joined;
}

/** True for a branch, false for a leaf or an extension. Throws INVALID_TRIE_NODE. */
export function isBranch(node: Uint8Array): boolean {
  return itemEnd(node, itemEnd(node, listStart(node))) < node.length;
}

/** True for a leaf, false for a branch or an extension. Throws INVALID_TRIE_NODE. */
export function isLeafNode(node: Uint8Array): boolean {
  const start = listStart(node);
  if (itemEnd(node, itemEnd(node, start)) < node.length) return false;
  return (node[stringStart(node, start)] ?? 0) >>> 4 >= 2;
}

/** A leaf or an extension taken apart; the content is a view of it. Throws INVALID_TRIE_NODE. */
export function decodeShort(node: Uint8Array): ShortNode {
  const start = listStart(node);
  const middle = itemEnd(node, start);
  const pathStart = stringStart(node, start);
  const flags = (node[pathStart] ?? 0xff) >>> 4;
  if (itemEnd(node, middle) !== node.length || flags > 3 || pathStart === middle) {
    throw new TrieError("INVALID_TRIE_NODE", "stored bytes are neither leaf nor extension");
  }
  const isLeaf = flags >= 2;
  const depth = 2 * pathStart + ((flags & 1) === 1 ? 1 : 2);
  const nibbles = nibblesOf(node, depth, 2 * middle);
  return { isLeaf, nibbles, content: node.subarray(isLeaf ? stringStart(node, middle) : middle) };
}

/** Where the 16 child items start, and the end of the last. Throws INVALID_TRIE_NODE. */
export function branchOffsets(node: Uint8Array): Uint16Array {
  const offsets = new Uint16Array(BRANCH_WIDTH + 1);
  let at = listStart(node);
  for (let nibble = 0; nibble < BRANCH_WIDTH; nibble++) {
    offsets[nibble] = at;
    const first = node[at] ?? 0;
    if (first === HASH_ITEM) at += HASH_ITEM_BYTES;
    else if (first === EMPTY_ITEM) at += 1;
    else if (first > 0xc0 && first < 0xc0 + HASHED_NODE_BYTES) at += first - 0xc0 + 1;
    else throw new TrieError("INVALID_TRIE_NODE", "a branch's child is no node reference");
  }
  if (at !== node.length - 1 || node[at] !== EMPTY_ITEM) {
    throw new TrieError("INVALID_TRIE_NODE", "stored bytes are no branch without a value");
  }
  offsets[BRANCH_WIDTH] = at;
  return offsets;
}

/** Leaves go with their block: no cache holds them. */
const LEAVES = new Slab();

/** RLP of the leaf for the part of `key` that lies below `depth` nibbles. */
export function encodeLeaf(key: Uint8Array, depth: number, value: Uint8Array): Uint8Array {
  const nibbles = 2 * key.length - depth;
  const odd = nibbles & 1;
  const pathBytes = (nibbles >>> 1) + 1;
  // A path of one byte is below 0x80, which is its own encoding.
  const payload = (pathBytes === 1 ? 1 : 1 + pathBytes) + rlpStringSizeBytes(value);
  const sizeBytes = rlpSizeBytes(payload);
  const node = LEAVES.take(sizeBytes);
  let at = writeRlpHeader(node, 0, payload, RLP_LIST);
  if (pathBytes > 1) at = writeRlpHeader(node, at, pathBytes, RLP_STRING);
  node[at++] = odd === 1 ? 0x30 | nibbleAt(key, depth) : 0x20;
  for (let from = (depth + odd) >>> 1; from < key.length; from++) node[at++] = key[from] ?? 0;
  writeRlpString(node, at, value);
  return node;
}

/** RLP of a leaf or an extension from its parts. */
export function encodeShort({ isLeaf, nibbles, content }: ShortNode): Uint8Array {
  const compact = compactPath(nibbles, isLeaf);
  return isLeaf ? encodeRlp([compact, content]) : encodeList([encodeRlp(compact), content]);
}

/** RLP of the extension over a child given as its RLP; hashes the child if it is not embedded. */
export function encodeExtension(nibbles: Uint8Array, child: Uint8Array): Uint8Array {
  const content = new Uint8Array(itemSize(child));
  writeItem(content, 0, child);
  return encodeShort({ isLeaf: false, nibbles, content });
}

/** A branch with one child item, as an extension that is being split needs for a moment. */
export function branchWithItem(nibble: number, item: Uint8Array): Uint8Array {
  const empty = Uint8Array.of(EMPTY_ITEM);
  const items = Array.from({ length: BRANCH_WIDTH + 1 }, (_, at) => (at === nibble ? item : empty));
  return encodeList(items);
}

/**
 * A branch with some children replaced; hashes each replaced child that is not embedded.
 * @param old the branch before, with its `offsets`
 * @param changed bit n is set where child n is replaced by `children[n]` (RLP; undefined = none)
 * @param slab where it is put; absent: an array of its own
 */
export function encodeBranch(
  old: Uint8Array,
  offsets: Uint16Array,
  changed: number,
  children: readonly (Uint8Array | undefined)[],
  slab?: Slab,
): Uint8Array {
  let payload = 1;
  for (let nibble = 0; nibble < BRANCH_WIDTH; nibble++) {
    payload +=
      (changed & (1 << nibble)) === 0
        ? (offsets[nibble + 1] ?? 0) - (offsets[nibble] ?? 0)
        : itemSize(children[nibble]);
  }
  const node = allocateList(payload, slab);
  copyChildren({ node, at: node.length - payload, old, offsets, changed, children });
  node[node.length - 1] = EMPTY_ITEM;
  return node;
}

/** A list's bytes with the header written; the payload, at the end, is left to the caller. */
function allocateList(payload: number, slab?: Slab): Uint8Array {
  // Branches have at most 529 bytes of payload, extensions 67: two length bytes suffice.
  const width = payload < 56 ? 0 : payload < 0x100 ? 1 : 2;
  const sizeBytes = 1 + width + payload;
  const node = slab === undefined ? new Uint8Array(sizeBytes) : slab.take(sizeBytes);
  node[0] = width === 0 ? 0xc0 + payload : 0xf7 + width;
  if (width === 1) node[1] = payload;
  if (width === 2) {
    node[1] = payload >>> 8;
    node[2] = payload & 0xff;
  }
  return node;
}

/** The list of items that are encoded already. */
function encodeList(items: readonly Uint8Array[]): Uint8Array {
  const payload = items.reduce((sizeBytes, item) => sizeBytes + item.length, 0);
  const node = allocateList(payload);
  let at = node.length - payload;
  for (const item of items) {
    node.set(item, at);
    at += item.length;
  }
  return node;
}

function copyChildren(options: {
  readonly node: Uint8Array;
  readonly at: number;
  readonly old: Uint8Array;
  readonly offsets: Uint16Array;
  readonly changed: number;
  readonly children: readonly (Uint8Array | undefined)[];
}): void {
  const { node, old, offsets, changed, children } = options;
  let at = options.at;
  let nibble = 0;
  while (nibble < BRANCH_WIDTH) {
    if ((changed & (1 << nibble)) !== 0) {
      at = writeItem(node, at, children[nibble]);
      nibble += 1;
      continue;
    }
    const from = offsets[nibble] ?? 0;
    while (nibble < BRANCH_WIDTH && (changed & (1 << nibble)) === 0) nibble += 1;
    const run = old.subarray(from, offsets[nibble]);
    node.set(run, at);
    at += run.length;
  }
}

/** Size in bytes of the item by which a parent refers to this child. */
function itemSize(child: Uint8Array | undefined): number {
  if (child === undefined) return 1;
  return child.length < HASHED_NODE_BYTES ? child.length : HASH_ITEM_BYTES;
}

function writeItem(target: Uint8Array, at: number, child: Uint8Array | undefined): number {
  if (child === undefined) {
    target[at] = EMPTY_ITEM;
    return at + 1;
  }
  if (child.length < HASHED_NODE_BYTES) {
    target.set(child, at);
    return at + child.length;
  }
  target[at] = HASH_ITEM;
  target.set(keccak256(child), at + 1);
  return at + HASH_ITEM_BYTES;
}

function compactPath(nibbles: Uint8Array, isLeaf: boolean): Uint8Array {
  const compact = new Uint8Array((nibbles.length >>> 1) + 1);
  const flag = isLeaf ? 0x20 : 0;
  const odd = nibbles.length & 1;
  compact[0] = odd === 1 ? flag | 0x10 | (nibbles[0] ?? 0) : flag;
  for (let index = odd; index < nibbles.length; index += 2) {
    compact[(index >>> 1) + 1] = ((nibbles[index] ?? 0) << 4) | (nibbles[index + 1] ?? 0);
  }
  return compact;
}

function listStart(node: Uint8Array): number {
  const first = node[0] ?? 0;
  if (first < 0xc0) throw new TrieError("INVALID_TRIE_NODE", "stored bytes are no list");
  return first < 0xf8 ? 1 : first - 0xf6;
}

/** Where a string's bytes start, given where its item starts. */
function stringStart(node: Uint8Array, at: number): number {
  const first = node[at] ?? 0;
  if (first < 0x80) return at;
  return first < 0xb8 ? at + 1 : at + first - 0xb6;
}

function itemEnd(node: Uint8Array, at: number): number {
  const first = node[at] ?? 0;
  let end = at + 1;
  if (first >= 0xc0) {
    // Only embedded nodes are lists inside a node, and they are short.
    end += first - 0xc0;
  } else if (first >= 0xb8) {
    const width = first - 0xb7;
    let size = 0;
    for (let index = 1; index <= width; index++) size = size * 256 + (node[at + index] ?? 0);
    end += width + size;
  } else if (first >= 0x80) {
    end += first - 0x80;
  }
  if (end > node.length) throw new TrieError("INVALID_TRIE_NODE", "a stored node is cut short");
  return end;
}
