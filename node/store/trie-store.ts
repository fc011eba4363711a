/**
 * Trie nodes at the tip by path, and what they were before each of the last blocks, so that
 * proofs can be made for recent heights (design point 10).
 */
import { heightBytes } from "../../chain/height-bytes.js";
import type { Height } from "../../chain/hex.js";
import { decodeRlp, encodeRlp, rlpBytes, rlpList } from "../../chain/rlp.js";
import { type Database, storeKey, type StoreWrite } from "./database.js";
import { baseWrites, type StoreBase } from "./store-base.js";
import type { TrieNodeReader, TrieWrite } from "./trie-port.js";

/** Blocks for which proofs are served, the head included, unless the node keeps an archive. */
const PROOF_WINDOW_BLOCKS = 1_024;

/** The oldest height that can be proven with the window's reverse diffs, with that head. */
export function oldestProofAt(head: Height): Height {
  return Math.max(0, head - PROOF_WINDOW_BLOCKS + 1);
}

/** Ends the owner in keys; owners are printable, so it cannot occur in them. */
const SEPARATOR = Uint8Array.of(0xff);

/** Owner and path as one name, unique for every node. */
function nodeName(owner: string, path: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(owner, "ascii"), SEPARATOR, path]);
}

/** Reads the latest nodes straight from the store. */
export function createTrieReader(database: Database): TrieNodeReader {
  return { get: (owner, path) => database.get(storeKey("trieNode", nodeName(owner, path))) };
}

/**
 * The writes of a block's trie changes: the new nodes, and one reverse diff with their former
 * versions (sorted by name); the diff that leaves the window is deleted.
 */
export function trieWritesOf(
  height: Height,
  changes: readonly TrieWrite[],
  keepAll: boolean,
): StoreWrite[] {
  const writes: StoreWrite[] = [];
  const former: { name: Buffer; previous: Uint8Array }[] = [];
  for (const { owner, path, node, previous } of changes) {
    const name = nodeName(owner, path);
    writes.push({ key: storeKey("trieNode", name), value: node });
    former.push({ name, previous: previous ?? new Uint8Array(0) });
  }
  former.sort((left, right) => Buffer.compare(left.name, right.name));
  const diff = encodeRlp(former.map(({ name, previous }) => [name, previous]));
  writes.push({ key: storeKey("trieDiff", heightBytes(height)), value: diff });
  const oldest = oldestProofAt(height);
  if (!keepAll && oldest > 0) {
    writes.push({ key: storeKey("trieDiff", heightBytes(oldest - 1)), value: undefined });
    writes.push(...baseWrites({ proofBase: oldest }));
  }
  return writes;
}

/** The writes of new nodes alone, for tries that are built from nothing. */
export function trieNodeWrites(changes: readonly TrieWrite[]): StoreWrite[] {
  return changes.map(({ owner, path, node }) => ({
    key: storeKey("trieNode", nodeName(owner, path)),
    value: node,
  }));
}

/** Nodes of one key's path, by depth in nibbles. */
type PathNodes = Map<number, Uint8Array>;

/**
 * Loads the nodes on the way to a key as they were after a block, for proofs: the present ones,
 * with the reverse diffs of the blocks since then applied.
 * @throws HISTORY_PRUNED when the reverse diffs of the blocks since then are not all there
 */
export async function loadTriePath(
  database: Database,
  owner: string,
  keyNibbles: Uint8Array,
  at: { height: Height; base: StoreBase },
): Promise<TrieNodeReader> {
  at.base.assertProof(at.height);
  const snapshot = database.snapshot();
  try {
    const nodes: PathNodes = new Map();
    // Extensions skip depths, so every prefix of the key is looked at: 65 reads.
    for (let depth = 0; depth <= keyNibbles.length; depth++) {
      const name = nodeName(owner, keyNibbles.subarray(0, depth));
      const node = database.get(storeKey("trieNode", name), snapshot);
      if (node !== undefined) nodes.set(depth, node);
    }
    // Newest first; also blocks above the head that became durable in the meantime.
    const range = {
      from: storeKey("trieDiff", heightBytes(at.height + 1)),
      to: storeKey("trieDiff", heightBytes(Number.MAX_SAFE_INTEGER)),
      reverse: true,
      snapshot,
    };
    for await (const [, diff] of database.entries(range)) undo(nodes, owner, keyNibbles, diff);
    return {
      get: (askedOwner, path) => (askedOwner === owner ? nodes.get(path.length) : undefined),
    };
  } finally {
    await snapshot.close();
  }
}

/** Applies one block's reverse diff to the nodes of a path. */
function undo(nodes: PathNodes, owner: string, keyNibbles: Uint8Array, diff: Uint8Array): void {
  const prefix = nodeName(owner, new Uint8Array(0));
  const key = Buffer.concat([prefix, keyNibbles]);
  for (const item of rlpList(decodeRlp(diff))) {
    const [nameItem, previousItem] = rlpList(item);
    const name = rlpBytes(nameItem);
    const isOnPath =
      name.length >= prefix.length &&
      name.length <= key.length &&
      Buffer.compare(name, key.subarray(0, name.length)) === 0;
    if (!isOnPath) continue;
    const previous = rlpBytes(previousItem);
    const depth = name.length - prefix.length;
    if (previous.length === 0) nodes.delete(depth);
    else nodes.set(depth, previous);
  }
}
