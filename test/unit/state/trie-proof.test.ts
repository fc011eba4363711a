import { createMPT, createMerkleProof, verifyMerkleProof } from "@ethereumjs/mpt";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { hexToBytes } from "../../../chain/hex.js";
import { emptyTrieReader, updateTrie } from "../../../node/state/trie.js";
import { proveKey } from "../../../node/state/trie-proof.js";
import { MemoryStore, placeOf, Random, seedOf, toHex } from "./trie-fixtures.js";

const OWNER = "0x00000000000000000000000000000000000000bb";

let seed = 1;
beforeAll(() => {
  seed = seedOf("trie-proof");
});

function filledStore(random: Random, keys: readonly Uint8Array[]) {
  const store = new MemoryStore();
  const puts = keys.map((key) => ({ key, value: random.value() }));
  const { root, writes } = updateTrie(store, OWNER, puts);
  store.apply(writes);
  return { store, root, puts };
}

describe("proveKey", () => {
  it("proves present and absent keys to @ethereumjs/mpt", async () => {
    const random = new Random(seed);
    const spread = Array.from({ length: 300 }, () => random.bytes(32));
    for (const keys of [spread, random.crowdedKeys(120), random.crowdedKeys(3), [spread[0]]]) {
      const known = keys.filter((key) => key !== undefined);
      const { store, root, puts } = filledStore(
        random,
        known.slice(0, Math.max(1, known.length / 2)),
      );
      const values = new Map(puts.map(({ key, value }) => [toHex(key), value]));
      const trie = await createMPT();
      for (const { key, value } of puts) await trie.put(key, value);
      for (const key of [...known, random.bytes(32)]) {
        const value = values.get(toHex(key));
        const proof = proveKey(store, OWNER, key);
        const message = `key ${toHex(key)}`;
        const theirs = await verifyMerkleProof(key, [...proof], { root: hexToBytes(root) });
        expect([message, theirs && toHex(theirs)]).toEqual([message, value ? toHex(value) : null]);
        const hashed = (await createMerkleProof(trie, key)).filter(
          (node, index) => index === 0 || node.length >= 32,
        );
        expect([message, proof.map(toHex)]).toEqual([message, hashed.map(toHex)]);
      }
    }
  });

  it("proves absence in an empty trie by an empty proof", () => {
    expect(proveKey(emptyTrieReader, OWNER, new Uint8Array(32))).toEqual([]);
  });

  it("takes no key of another length", () => {
    for (const length of [0, 31, 33]) {
      const prove = (): unknown => [
        length,
        proveKey(emptyTrieReader, OWNER, new Uint8Array(length)),
      ];
      expect(prove).toThrow(expect.objectContaining({ code: "INVALID_PROOF" }));
    }
  });

  it("refuses to prove from a store whose nodes do not fit together", () => {
    const random = new Random(seed + 1);
    const keys = Array.from({ length: 200 }, () => random.bytes(32));
    const { store } = filledStore(random, keys);
    const key = keys[0] ?? new Uint8Array(32);
    const place = placeOf(OWNER, Uint8Array.of((key[0] ?? 0) >>> 4));
    const node = store.nodes.get(place) ?? "";
    const last = node.lastIndexOf("a0");
    store.nodes.set(place, `${node.slice(0, last + 2)}${"00".repeat(32)}${node.slice(last + 66)}`);
    expect(() => proveKey(store, OWNER, key)).toThrow(
      expect.objectContaining({ code: "INVALID_TRIE_NODE" }),
    );
    store.nodes.delete(place);
    expect(() => proveKey(store, OWNER, key)).toThrow(
      expect.objectContaining({ code: "TRIE_NODE_MISSING" }),
    );
  });
});
