/**
 * Pure: the part of a key that a leaf or an extension of a trie holds, and the way of a key from node to
 * node. Source: Yellow Paper, appendices C and D.
 */
import { decodeRlp, type RlpItem } from "../../chain/encoding/rlp.js";
import { bytesToHash32, type Hash32 } from "../../chain/hex.js";

/** A part of a key, and what stands behind it. */
export interface TriePath {
  /** Whether a value stands behind it, else a node. */
  readonly isLeaf: boolean;
  /** Nibbles, as hex digits. */
  readonly digits: string;
}

/** The first nibble tells leaves (2, 3) from extensions (0, 1), and odd lengths (1, 3). */
export function decodeTriePath(encoded: Uint8Array): TriePath {
  const digits = Buffer.from(encoded).toString("hex");
  const [first] = digits;
  const isOdd = first === "1" || first === "3";
  return { isLeaf: first === "2" || first === "3", digits: digits.slice(isOdd ? 1 : 2) };
}

/** A node that is named by its hash, and how many digits of the key stand above it. */
export interface TrieStep {
  readonly reference: Hash32;
  readonly depth: number;
}

/**
 * The node below one on the way of a key. @param digits nibbles of the key, as hex digits
 * @returns undefined where the way ends: at a value, at nothing, or at what is no node
 */
export function stepBelow(node: Uint8Array, digits: string, depth: number): TrieStep | undefined {
  const item = listOf(node);
  if (item?.length === 17) {
    return stepTo(item[Number.parseInt(digits.charAt(depth), 16)], depth + 1);
  }
  const [encoded, child] = item ?? [];
  if (item?.length !== 2 || !(encoded instanceof Uint8Array)) return undefined;
  const path = decodeTriePath(encoded);
  if (path.isLeaf || !digits.startsWith(path.digits, depth)) return undefined;
  return stepTo(child, depth + path.digits.length);
}

/** A node of fewer than 32 bytes stands in its parent, and comes with it. */
function stepTo(child: RlpItem | undefined, depth: number): TrieStep | undefined {
  if (!(child instanceof Uint8Array) || child.length !== 32) return undefined;
  return { reference: bytesToHash32(child), depth };
}

function listOf(node: Uint8Array): RlpItem[] | undefined {
  try {
    const item = decodeRlp(node);
    return Array.isArray(item) ? item : undefined;
  } catch {
    return undefined; // Whoever verifies the way says what is wrong with it.
  }
}
