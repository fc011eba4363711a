import { createMPT, createMerkleProof, verifyMerkleProof } from "@ethereumjs/mpt";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { EMPTY_TRIE_ROOT, hexToBytes } from "../../../chain/hex.js";
import { encodeRlp } from "../../../chain/encoding/rlp.js";
import { emptyTrieReader, updateTrie } from "../../../node/state/trie.js";
import { proveKey, verifyProof } from "../../../node/state/trie-proof.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { MemoryStore, placeOf, Random, seedOf, toHex } from "./trie-fixtures.js";

const OWNER = "0x00000000000000000000000000000000000000bb";
const INVALID = expect.objectContaining({ code: "INVALID_PROOF" });

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
  it("proves present and absent keys to @ethereumjs/mpt and to verifyProof", async () => {
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
        expect([message, verifyProof(root, key, proof)]).toEqual([message, value]);
        const theirs = await verifyMerkleProof(key, [...proof], { root: hexToBytes(root) });
        expect([message, theirs && toHex(theirs)]).toEqual([message, value ? toHex(value) : null]);
        const hashed = (await createMerkleProof(trie, key)).filter(
          (node, index) => index === 0 || node.length >= 32,
        );
        expect([message, proof.map(toHex)]).toEqual([message, hashed.map(toHex)]);
      }
    }
  });

  it("proves absence in an empty trie by an empty proof, under the empty root only", () => {
    const key = new Uint8Array(32);
    expect(proveKey(emptyTrieReader, OWNER, key)).toEqual([]);
    expect(verifyProof(EMPTY_TRIE_ROOT, key, [])).toBeUndefined();
    expect(verifyProof(EMPTY_TRIE_ROOT, key, [Uint8Array.of(0x80)])).toBeUndefined();
    expect(() => verifyProof(keccak256Hex(key), key, [])).toThrow(INVALID);
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

describe("verifyProof", () => {
  it("refuses changed bytes, missing, added or swapped nodes, another root", () => {
    const random = new Random(seed + 2);
    const keys = [...random.crowdedKeys(60), ...Array.from({ length: 60 }, () => random.bytes(32))];
    const { store, root } = filledStore(random, keys);
    for (const key of [keys[0], keys[70], random.bytes(32)]) {
      if (key === undefined) continue;
      const proof = proveKey(store, OWNER, key);
      for (let index = 0; index < proof.length; index++) {
        const bad = proof.map((node) => Uint8Array.from(node));
        const node = bad[index] ?? new Uint8Array(1);
        const at = random.below(node.length);
        node[at] = (node[at] ?? 0) ^ 1;
        expect(() => verifyProof(root, key, bad)).toThrow(INVALID);
        expect(() => verifyProof(root, key, proof.toSpliced(index, 1))).toThrow(INVALID);
      }
      expect(() => verifyProof(root, key, [...proof, ...proof.slice(-1)])).toThrow(INVALID);
      expect(() => verifyProof(root, key, proof.toReversed())).toThrow(INVALID);
      expect(() => verifyProof(EMPTY_TRIE_ROOT, key, proof)).toThrow(INVALID);
      expect(() => verifyProof(root, key, [])).toThrow(INVALID);
      expect(() => verifyProof(root, key.subarray(1), proof)).toThrow(INVALID);
    }
  });

  it("does not take the proof of one key for another's", () => {
    const random = new Random(seed + 3);
    const keys = Array.from({ length: 50 }, () => random.bytes(32));
    const { store, root } = filledStore(random, keys);
    const [mine, other] = [keys[0] ?? keys.length, keys[1] ?? keys.length];
    if (typeof mine === "number" || typeof other === "number") throw new Error("no keys");
    const proof = proveKey(store, OWNER, mine);
    expect(() => verifyProof(root, other, proof)).toThrow(INVALID);
  });

  it("refuses nodes with the right hash and a wrong form", () => {
    const key = new Uint8Array(32);
    const none = new Uint8Array(0);
    const value = Uint8Array.of(7);
    const empties = Array.from({ length: 16 }, () => none);
    const leafPath = Uint8Array.of(0x20, ...key);
    const forms = {
      "a string": encodeRlp(value),
      "three items": encodeRlp([leafPath, value, value]),
      "a branch with a value": encodeRlp([...empties, value]),
      "a leaf without a value": encodeRlp([leafPath, none]),
      "a leaf with a list": encodeRlp([leafPath, [value]]),
      "unknown flags": encodeRlp([Uint8Array.of(0x40, ...key), value]),
      "padding that is not zero": encodeRlp([Uint8Array.of(0x21, ...key), value]),
      "no path": encodeRlp([none, value]),
      "an extension without a path": encodeRlp([Uint8Array.of(0), [...empties, none]]),
      "an extension to a leaf": encodeRlp([Uint8Array.of(0x10), [Uint8Array.of(0x20), value]]),
      "an extension to nothing": encodeRlp([Uint8Array.of(0x10), none]),
      "a child that is no hash": encodeRlp([value, ...empties]),
      "an embedded node of 32 bytes": encodeRlp([[leafPath, value], ...empties]),
      "bytes behind the node": Uint8Array.of(...encodeRlp([leafPath, value]), 0),
    };
    for (const [form, node] of Object.entries(forms)) {
      const verify = (): unknown => [form, verifyProof(keccak256Hex(node), key, [node])];
      expect(verify).toThrow(INVALID);
    }
    const good = encodeRlp([leafPath, value]);
    expect(verifyProof(keccak256Hex(good), key, [good])).toEqual(value);
  });
});
