/** Pure: the part of a key that a leaf or an extension of a trie holds. Source: Yellow Paper, appendix C. */

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
