/**
 * Leaves as another implementation of RLP encodes them, for all paths and sizes of values; told from
 * other nodes; and made from what the flat state had instead of read.
 */
import { RLP } from "@ethereumjs/rlp";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { Slab } from "../../../chain/encoding/slab.js";
import type { TrieUpdate } from "../../../node/state/trie-batch.js";
import { encodeLeaf, isLeafNode } from "../../../node/state/trie-nodes.js";
import { updateTrie } from "../../../node/state/trie.js";
import { MemoryStore, Random, seedOf } from "./trie-fixtures.js";

const OWNER = "m";

let seed = 1;
beforeAll(() => {
  seed = seedOf("trie-leaves");
});

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

  it("keeps its bytes when more leaves are made in the same slab", () => {
    const slab = new Slab();
    const leaves = Array.from({ length: 5_000 }, (_, index) => {
      return encodeLeaf(KEY, index % 64, Uint8Array.of(0xc0, index & 0xff, index >>> 8), slab);
    });
    for (const [index, leaf] of leaves.entries()) {
      const value = Uint8Array.of(0xc0, index & 0xff, index >>> 8);
      expect(Buffer.from(leaf).equals(RLP.encode([compactPath(index % 64), value]))).toBe(true);
    }
  });
});

describe("a leaf whose value the flat state tells", () => {
  /** A trie of random keys, and as many updates of a part of them: changed, deleted, new beside them. */
  function changedTrie() {
    const random = new Random(seed);
    const store = new MemoryStore();
    const values = new Map(
      Array.from({ length: 600 }, () => [random.bytes(32), random.value()] as const),
    );
    const puts = [...values].map(([key, value]) => ({ key, value }));
    store.apply(updateTrie(store, OWNER, puts).writes);
    const plain: TrieUpdate[] = [...values.keys()].slice(0, 200).map((key, index) => ({
      key,
      value: index % 5 === 0 ? undefined : random.value(),
      existed: true,
    }));
    for (let index = 0; index < 20; index++) {
      plain.push({ key: random.bytes(32), value: random.value(), existed: false });
    }
    return { store, plain, values };
  }

  it("is not read, and all comes out as if it were", () => {
    const { store, plain, values } = changedTrie();
    const before = store.reads;
    const expected = updateTrie(store, OWNER, plain);
    const readsWithout = store.reads - before;
    const told = plain.map((update) => {
      const value = values.get(update.key);
      return value === undefined ? update : { ...update, former: () => value };
    });
    const change = updateTrie(store, OWNER, told);
    expect(change).toEqual(expected);
    const reads = store.reads - before - readsWithout;
    // Most of 200 keys are leaves of their own below a branch.
    expect(readsWithout - reads).toBeGreaterThan(100);
  });

  it("is read where the flat state tells something else", () => {
    const { store, plain } = changedTrie();
    const expected = updateTrie(store, OWNER, plain);
    const told = plain.map((update) => ({
      ...update,
      ...(update.existed === true && { former: () => Uint8Array.of(1, 2, 3) }),
    }));
    expect(updateTrie(store, OWNER, told)).toEqual(expected);
  });

  it("is told from branches and extensions", () => {
    const { store } = changedTrie();
    const kinds = store.dump(OWNER).map(([, hex]) => {
      const node = Buffer.from(hex, "hex");
      const items = RLP.decode(node) as Uint8Array[];
      const isShort = items.length === 2;
      expect(isLeafNode(node)).toBe(isShort && (items[0]?.[0] ?? 0) >= 0x20);
      return items.length;
    });
    expect(new Set(kinds)).toEqual(new Set([2, 17]));
  });
});
