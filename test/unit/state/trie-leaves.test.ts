/** Leaves as another implementation of RLP encodes them, for all paths and sizes of values. */
import { RLP } from "@ethereumjs/rlp";
import { describe, expect, it } from "@jest/globals";
import { encodeLeaf } from "../../../node/state/trie-nodes.js";

const KEY = Uint8Array.from({ length: 32 }, (_, index) => (index * 37 + 11) & 0xff);
const VALUE_SIZES = [1, 2, 31, 32, 33, 54, 55, 56, 57, 110, 254, 255, 256, 257, 300, 70_000];

/** The yellow paper's hex-prefix encoding of a leaf's path, by its nibbles as digits. */
function compactPath(depth: number): Uint8Array {
  const digits = Buffer.from(KEY).toString("hex").slice(depth);
  return Buffer.from(digits.length % 2 === 1 ? `3${digits}` : `20${digits}`, "hex");
}

describe("a leaf", () => {
  it.each(VALUE_SIZES)("with a value of %d bytes, below each depth", (size) => {
    for (const first of [0x01, 0x7f, 0x80, 0xff]) {
      const value = new Uint8Array(size).fill(0xab);
      value[0] = first;
      for (let depth = 0; depth <= 64; depth++) {
        const leaf = encodeLeaf(KEY, depth, value);
        expect(Buffer.from(leaf).equals(RLP.encode([compactPath(depth), value]))).toBe(true);
      }
    }
  });

  it("keeps its bytes when more leaves are made", () => {
    const leaves = Array.from({ length: 5_000 }, (_, index) => {
      return encodeLeaf(KEY, index % 64, Uint8Array.of(0xc0, index & 0xff, index >>> 8));
    });
    for (const [index, leaf] of leaves.entries()) {
      const value = Uint8Array.of(0xc0, index & 0xff, index >>> 8);
      expect(Buffer.from(leaf).equals(RLP.encode([compactPath(index % 64), value]))).toBe(true);
    }
  });
});
