/**
 * Trie nodes at the tip by path, and what they were before each of the last blocks, so that
 * proofs can be made for recent heights (design point 10).
 */
import type { Height } from "../../chain/hex.js";
import { decodeRlp, encodeRlp, rlpBytes, rlpList } from "../../chain/rlp.js";
import type { TrieNodeReader, TrieWrite } from "../state/trie.js";
import { type Database, heightBytes, StoreError, storeKey, type StoreWrite } from "./database.js";

/** Blocks back from the head for which proofs are served, unless the node keeps an archive. */
export const PROOF_WINDOW_BLOCKS = 1_024;

/** Separates owner and path in keys; owners are printable, so it cannot occur in them. */
const SEPARATOR = Uint8Array.of(0xff);

function nodeKey(owner: string, path: Uint8Array): [Buffer, Uint8Array, Uint8Array, Uint8Array] {
  // The path's length comes before the height, so that no path is a prefix of another's keys.
  return [Buffer.from(owner, "ascii"), SEPARATOR, path, Uint8Array.of(0xfe, path.length)];
}

/** Reads the latest nodes straight from the store. */
export function createTrieReader(database: Database): TrieNodeReader {
  return {
    get: (owner, path) => database.get(storeKey("trieNode", ...nodeKey(owner, path))),
  };
}

/**
 * The writes of a block's trie changes: new nodes, their former versions, and the list by which
 * those are pruned once the window has passed.
 */
export function trieWritesOf(
  database: Database,
  height: Height,
  changes: readonly TrieWrite[],
  keepAll: boolean,
): StoreWrite[] {
  const writes: StoreWrite[] = [];
  const historyKeys: Uint8Array[] = [];
  for (const { owner, path, node, previous } of changes) {
    const parts = nodeKey(owner, path);
    const key = storeKey("trieNode", ...parts);
    const historyKey = storeKey("trieHistory", ...parts, heightBytes(height));
    writes.push({ key, value: node });
    writes.push({ key: historyKey, value: previous ?? new Uint8Array(0) });
    historyKeys.push(historyKey);
  }
  if (!keepAll) {
    const indexKey = storeKey("trieHistoryIndex", heightBytes(height));
    writes.push({ key: indexKey, value: encodeRlp(historyKeys) });
    writes.push(...pruningWrites(database, height - PROOF_WINDOW_BLOCKS));
  }
  return writes;
}

function pruningWrites(database: Database, height: Height): StoreWrite[] {
  if (height < 1) return [];
  const indexKey = storeKey("trieHistoryIndex", heightBytes(height));
  const index = database.get(indexKey);
  if (index === undefined) return [];
  const keys = rlpList(decodeRlp(index)).map((item) => Buffer.from(rlpBytes(item)));
  return [indexKey, ...keys].map((key) => ({ key, value: undefined }));
}

/**
 * Loads the nodes on the way to a key as they were after a block, for proofs.
 * @throws HISTORY_PRUNED when the height is outside the window
 */
export async function loadTriePath(
  database: Database,
  owner: string,
  keyNibbles: Uint8Array,
  at: { height: Height; head: Height; keepAll: boolean },
): Promise<TrieNodeReader> {
  if (!at.keepAll && at.head - at.height >= PROOF_WINDOW_BLOCKS) {
    throw new StoreError("HISTORY_PRUNED", "pruned history unavailable", {
      details: { height: at.height, oldest: at.head - PROOF_WINDOW_BLOCKS + 1 },
    });
  }
  const nodes = new Map<number, Uint8Array>();
  // Extensions skip depths, so every prefix of the key is looked at: 65 reads, a few milliseconds.
  for (let depth = 0; depth <= keyNibbles.length; depth++) {
    const node = await nodeAt(database, owner, keyNibbles.subarray(0, depth), at.height);
    if (node !== undefined) nodes.set(depth, node);
  }
  return {
    get: (askedOwner, path) => (askedOwner === owner ? nodes.get(path.length) : undefined),
  };
}

async function nodeAt(
  database: Database,
  owner: string,
  path: Uint8Array,
  height: Height,
): Promise<Uint8Array | undefined> {
  const parts = nodeKey(owner, path);
  // The current node is read before the history: a block that becomes durable in between has
  // written its history entry together with the node, so the later look finds the former one.
  const current = database.get(storeKey("trieNode", ...parts));
  const range = {
    from: storeKey("trieHistory", ...parts, heightBytes(height + 1)),
    to: storeKey("trieHistory", ...parts, heightBytes(Number.MAX_SAFE_INTEGER)),
    limit: 1,
  };
  for await (const [, former] of database.entries(range)) {
    return former.length === 0 ? undefined : former;
  }
  return current;
}
