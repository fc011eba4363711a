/**
 * Merkle proofs of single keys (EIP-1186), made from the node store and checked without it. The
 * verifier shares no code with the store's node codec: it decodes with the strict RLP decoder.
 */
import { keccak256 } from "../../chain/hashes.js";
import { errorMessage } from "../../chain/errors.js";
import { bytesEqual, EMPTY_TRIE_ROOT, type Hash32, hexToBytes } from "../../chain/hex.js";
import { decodeRlp, encodeRlp, rlpBytes, type RlpItem } from "../../chain/encoding/rlp.js";
import {
  branchOffsets,
  decodeShort,
  HASH_ITEM,
  isBranch,
  nibbleAt,
  nibblesOf,
  TrieError,
} from "./trie-nodes.js";
import type { TrieNodeReader } from "../store/trie-port.js";
import { readNode, TRIE_KEY_BYTES } from "./trie.js";

/**
 * RLP of the nodes from the root to the key's place, or to where its absence shows; embedded nodes
 * are inside their parents. An empty trie has an empty proof.
 * @param key 32 bytes, already hashed by the caller
 * @throws TRIE_NODE_MISSING; INVALID_TRIE_NODE if the store mixes versions, for no such proof holds
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

/**
 * Checks a proof on its own and gives the proven value, or undefined if the key is proven absent.
 * Every node must be used: a proof with more or fewer nodes than the way needs is wrong.
 * @param root the trie's root, from a header that the caller trusts
 * @param key 32 bytes, already hashed
 * @throws INVALID_PROOF
 */
export function verifyProof(
  root: Hash32,
  key: Uint8Array,
  proof: readonly Uint8Array[],
): Uint8Array | undefined {
  checkKey(key);
  if (root === EMPTY_TRIE_ROOT && proof.length === 0) return undefined;
  const way = new ProofWalk(proof);
  let item: RlpItem = way.next(hexToBytes(root));
  let nibbles = nibblesOf(key, 0, 2 * key.length);
  for (;;) {
    if (!Array.isArray(item)) {
      // Only an empty item stands for "nothing here", in a branch or as the root itself.
      if (item.length !== 0) throw wrong("a node is no list");
      return way.end(undefined);
    }
    if (item.length === 17) {
      const [nibble] = nibbles;
      if (nibble === undefined || rlpField(item[16]).length !== 0)
        throw wrong("a branch has a value");
      item = way.follow(item[nibble]);
      nibbles = nibbles.subarray(1);
      continue;
    }
    const path = decodePath(item);
    if (path.isLeaf) {
      const value = rlpField(item[1]);
      if (value.length === 0) throw wrong("a leaf has no value");
      return way.end(bytesEqual(path.nibbles, nibbles) ? value : undefined);
    }
    if (!bytesEqual(path.nibbles, nibbles.subarray(0, path.nibbles.length))) {
      return way.end(undefined);
    }
    const child: RlpItem = way.follow(item[1]);
    if (!Array.isArray(child) || child.length !== 17)
      throw wrong("an extension leads to no branch");
    nibbles = nibbles.subarray(path.nibbles.length);
    item = child;
  }
}

/** Hands out a proof's nodes one by one, each only if it is the one that was referred to. */
class ProofWalk {
  private used = 0;

  constructor(private readonly proof: readonly Uint8Array[]) {}

  next(hash: Uint8Array): RlpItem {
    const node = this.proof[this.used];
    if (node === undefined) throw wrong("a node is missing");
    if (!bytesEqual(keccak256(node), hash)) throw wrong("a node has not the hash its parent names");
    this.used += 1;
    try {
      return decodeRlp(node);
    } catch (cause) {
      throw wrong(errorMessage(cause), cause);
    }
  }

  /** A child item: embedded list, hash of the next proof node, or empty. */
  follow(item: RlpItem | undefined): RlpItem {
    if (Array.isArray(item)) {
      if (encodeRlp(item).length >= 32) throw wrong("a node of 32 bytes or more is embedded");
      return item;
    }
    const bytes = rlpField(item);
    if (bytes.length === 32) return this.next(bytes);
    if (bytes.length !== 0) throw wrong("a child is neither node nor hash");
    return bytes;
  }

  end<Result>(result: Result): Result {
    if (this.used !== this.proof.length) throw wrong("nodes are left over");
    return result;
  }
}

function decodePath(node: readonly RlpItem[]): {
  readonly isLeaf: boolean;
  readonly nibbles: Uint8Array;
} {
  const compact = rlpField(node[0]);
  const flags = (compact[0] ?? 0xff) >>> 4;
  const padding = (compact[0] ?? 0) & 15;
  if (node.length !== 2 || flags > 3 || ((flags & 1) === 0 && padding !== 0)) {
    throw wrong("a node is neither branch, leaf nor extension");
  }
  const nibbles = nibblesOf(compact, (flags & 1) === 1 ? 1 : 2, 2 * compact.length);
  if (flags < 2 && nibbles.length === 0) throw wrong("an extension has no path");
  return { isLeaf: flags >= 2, nibbles };
}

function rlpField(item: RlpItem | undefined): Uint8Array {
  try {
    return rlpBytes(item);
  } catch (cause) {
    throw wrong(errorMessage(cause), cause);
  }
}

function checkKey(key: Uint8Array): void {
  if (key.length !== TRIE_KEY_BYTES) throw wrong("a key has 32 bytes");
}

function wrong(reason: string, cause?: unknown): TrieError {
  return new TrieError("INVALID_PROOF", reason, { cause });
}
