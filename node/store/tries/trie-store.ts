/** Trie nodes at the tip, by owner and path. */
import { keccak256 } from "../../../chain/hashes.js";
import { bytesEqual } from "../../../chain/hex.js";
import { type Database, KEY_SPACE, type StoreWrite } from "../database.js";
import type { TrieNodeReader, TrieWrite } from "./trie-port.js";

const HASH_BYTES = 32;

/** Ends the owner in keys; owners are printable, so it cannot occur in them. */
const SEPARATOR = 0xff;

/** Key of a node: its name is owner and path, unique for each. */
export function nodeKey(owner: string, path: Uint8Array): Buffer {
  const key = Buffer.allocUnsafe(owner.length + path.length + 2);
  key[0] = KEY_SPACE.trieNode;
  for (let index = 0; index < owner.length; index++) key[index + 1] = owner.charCodeAt(index);
  key[owner.length + 1] = SEPARATOR;
  for (let index = 0; index < path.length; index++) {
    key[owner.length + 2 + index] = path[index] ?? 0;
  }
  return key;
}

/** The name that a node's key holds. */
export const nameIn = (key: Buffer): Buffer => key.subarray(1);

/**
 * Names in the order of their bytes; in JavaScript, because most differ in their first ones.
 * @param alike first bytes that are known to be the same in both
 */
export function compareNames(left: Uint8Array, right: Uint8Array, alike = 0): number {
  const shorter = Math.min(left.length, right.length);
  for (let index = alike; index < shorter; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

/**
 * Reads the latest nodes straight from the store, each held against the hash in its parent. The
 * checksum of a record alone does not do: level drops a damaged batch of its log without a word,
 * and the node from before it is as whole as the one that is lost.
 */
export function createTrieReader(database: Database): TrieNodeReader {
  const damage = (reason: string) => database.damage(reason);
  return {
    damage,
    get(owner, path, parent, hashOffset = 0) {
      const node = database.get(nodeKey(owner, path));
      if (parent === undefined) return node;
      const expected = parent.subarray(hashOffset, hashOffset + HASH_BYTES);
      if (node !== undefined && bytesEqual(keccak256(node), expected)) return node;
      const place = `${owner || "the accounts"}, path 0x${bytesToNibbleHex(path)}`;
      throw damage(`trieNode of ${place}: it is not the one that its parent names`);
    },
  };
}

function bytesToNibbleHex(path: Uint8Array): string {
  return Array.from(path, (nibble) => nibble.toString(16)).join("");
}

/** The writes of new nodes alone, for tries that are built from nothing. */
export function trieNodeWrites(changes: readonly TrieWrite[]): StoreWrite[] {
  return changes.map(({ owner, path, node }) => ({
    key: nodeKey(owner, path),
    value: node,
  }));
}
