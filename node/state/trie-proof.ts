/** Merkle proofs of single keys (EIP-1186), made from the node store. */
import { keccak256 } from "../../chain/hashes.js";
import { bytesEqual } from "../../chain/hex.js";
import {
  branchOffsets,
  decodeShort,
  HASH_ITEM,
  isBranch,
  nibbleAt,
  nibblesOf,
  TrieError,
} from "./trie-nodes.js";
import type { TrieNodeReader } from "../store/tries/trie-port.js";
import { readNode, TRIE_KEY_BYTES } from "./trie.js";

/**
 * RLP of the nodes from the root to the key's place, or to where its absence shows; embedded nodes
 * are inside their parents. An empty trie has an empty proof.
 * @param key 32 bytes, already hashed by the caller
 * @throws INVALID_PROOF for a key of another length, TRIE_NODE_MISSING; INVALID_TRIE_NODE if the store
 * mixes versions, for no such proof holds
 */
export function proveKey(
  reader: TrieNodeReader,
  owner: string,
  key: Uint8Array,
): readonly Uint8Array[] {
  checkKey(key);
  const root = reader.get(owner, new Uint8Array(0));
  const proof: Uint8Array[] = [];
  if (root === undefined) return proof;
  proof.push(root);
  let node = root;
  let depth = 0;
  for (;;) {
    const step = stepDown(node, key, depth);
    if (step === undefined) return proof;
    depth = step.depth;
    if (step.item[0] !== HASH_ITEM) {
      node = step.item;
      continue;
    }
    node = readNode(reader, owner, nibblesOf(key, 0, depth));
    if (!bytesEqual(keccak256(node), step.item.subarray(1))) {
      throw new TrieError("INVALID_TRIE_NODE", "a stored node is not the one its parent names");
    }
    proof.push(node);
  }
}

/** The child item on the key's way and its depth; undefined where the way ends. */
function stepDown(
  node: Uint8Array,
  key: Uint8Array,
  depth: number,
): { readonly item: Uint8Array; readonly depth: number } | undefined {
  if (isBranch(node)) {
    const offsets = branchOffsets(node);
    const nibble = nibbleAt(key, depth);
    const item = node.subarray(offsets[nibble], offsets[nibble + 1]);
    return item.length === 1 ? undefined : { item, depth: depth + 1 };
  }
  const { isLeaf, nibbles, content } = decodeShort(node);
  const end = depth + nibbles.length;
  if (isLeaf || !bytesEqual(nibblesOf(key, depth, end), nibbles)) return undefined;
  return { item: content, depth: end };
}

function checkKey(key: Uint8Array): void {
  if (key.length !== TRIE_KEY_BYTES) {
    throw new TrieError("INVALID_PROOF", "a key has 32 bytes");
  }
}
