import { beforeAll, describe, expect, it } from "@jest/globals";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import { type TrieChange, updateTrie } from "../../../node/state/trie.js";
import { TrieCache } from "../../../node/state/trie-cache.js";
import { encodeLeaf, isLeafNode } from "../../../node/state/trie-nodes.js";
import { MemoryStore, placeOf, Random, seedOf, toHex } from "./trie-fixtures.js";

const OWNER = "m";
const MEGABYTE = 1_000_000;

let seed = 1;
beforeAll(() => {
  seed = seedOf("trie-cache");
});

/** As text, because comparing thousands of typed arrays takes seconds. */
function asText({ root, writes }: TrieChange): string[] {
  return [
    root,
    ...writes.map((write) =>
      [placeOf(write.owner, write.path), nodeText(write.node), nodeText(write.previous)].join(" "),
    ),
  ];
}

/** A node that is held, of about so many bytes. */
function extension(sizeBytes: number): Uint8Array {
  return encodeRlp([Uint8Array.of(0x00, 0x12), new Uint8Array(sizeBytes)]);
}

function nodeText(node: Uint8Array | undefined): string {
  return node === undefined ? "-" : toHex(node);
}

describe("TrieCache", () => {
  it("shows what the store shows over batches, abandoned ones and evictions included", () => {
    const random = new Random(seed);
    const pool = [
      ...random.crowdedKeys(150),
      ...Array.from({ length: 150 }, () => random.bytes(32)),
    ];
    for (const maxSizeBytes of [0, 20_000, MEGABYTE]) {
      const store = new MemoryStore();
      const cache = new TrieCache(store, { maxSizeBytes });
      for (let round = 0; round < 40; round++) {
        updateTrie(cache, OWNER, random.batch(pool, 20, 50));
        const batch = random.batch(pool, 40, 40);
        const expected = updateTrie(store, OWNER, batch);
        const change = updateTrie(cache, OWNER, batch);
        const context = { maxSizeBytes, round };
        expect({ context, change: asText(change) }).toEqual({ context, change: asText(expected) });
        store.apply(change.writes);
        cache.apply(change.writes);
        expect(cache.sizeBytes).toBeLessThanOrEqual(maxSizeBytes);
      }
    }
  });

  it("keeps no more bytes than it says, where most of each batch is replaced by the next one", () => {
    const random = new Random(seed + 2);
    const store = new MemoryStore();
    const cache = new TrieCache(store, { maxSizeBytes: 8 * MEGABYTE });
    const keys = Array.from({ length: 1_000 }, () => random.bytes(32));
    const put = (changed: readonly Uint8Array[]) => {
      const updates = changed.map((key) => ({ key, value: random.bytes(40) }));
      const { writes } = updateTrie(cache, OWNER, updates);
      store.apply(writes);
      cache.apply(writes);
      return writes;
    };
    const places = [...put(keys)];
    // What is changed all the time, and one key more each time that stays for good.
    const hot = keys.slice(0, 200);
    for (let round = 0; round < 60; round++) {
      places.push(...put([...hot, random.pick(keys.slice(200))]));
    }
    const { reads } = store;
    const branches = places.filter(({ node }) => node !== undefined && !isLeafNode(node));
    const buffers = new Set(branches.map(({ owner, path }) => cache.get(owner, path)?.buffer));
    expect(store.reads).toBe(reads);
    const heldBytes = [...buffers].reduce((sum, buffer) => sum + (buffer?.byteLength ?? 0), 0);
    expect(heldBytes).toBeLessThanOrEqual(cache.sizeBytes);
  });

  it("asks the store once for a node that is read again", () => {
    const random = new Random(seed + 1);
    const store = new MemoryStore();
    const batch = random.batch(random.crowdedKeys(80), 80, 0);
    const changed = batch.map(({ key, value }) => ({ key, value: random.value(), before: value }));
    store.apply(updateTrie(store, OWNER, batch).writes);
    const cache = new TrieCache(store, { maxSizeBytes: MEGABYTE });
    updateTrie(cache, OWNER, changed);
    const { reads } = store;
    updateTrie(cache, OWNER, changed);
    expect(store.reads).toBe(reads);
  });

  it("reads and holds no leaf whose value is known", () => {
    const random = new Random(seed + 3);
    const store = new MemoryStore();
    const batch = Array.from({ length: 500 }, () => ({
      key: random.bytes(32),
      value: random.bytes(40),
    }));
    store.apply(updateTrie(store, OWNER, batch).writes);
    const cache = new TrieCache(store, { maxSizeBytes: MEGABYTE });
    const changed = batch.map(({ key, value }) => {
      return { key, value: random.bytes(40), existed: true, before: value };
    });
    const { reads } = store;
    const known = updateTrie(cache, OWNER, changed);
    const branches = [...store.nodes.values()].filter(
      (node) => !isLeafNode(Buffer.from(node, "hex")),
    );
    expect(store.reads - reads).toBe(branches.length);
    const { sizeBytes } = cache;
    expect(sizeBytes).toBeGreaterThan(0);
    const plain = changed.map(({ key, value }) => ({ key, value }));
    const expected = updateTrie(store, OWNER, plain);
    expect(asText(known)).toEqual(asText(expected));
    // Nor does it hold those that are read, or written.
    expect(asText(updateTrie(cache, OWNER, plain))).toEqual(asText(expected));
    store.apply(known.writes);
    cache.apply(known.writes);
    expect(cache.sizeBytes).toBe(sizeBytes);
  });

  it("reads a leaf that is another than the value which is said to be there", () => {
    const random = new Random(seed + 4);
    const store = new MemoryStore();
    const keys = [random.bytes(32), random.bytes(32)];
    const put = keys.map((key) => ({ key, value: random.bytes(40) }));
    store.apply(updateTrie(store, OWNER, put).writes);
    const cache = new TrieCache(store, { maxSizeBytes: MEGABYTE });
    const [key = new Uint8Array(32)] = keys;
    const before = random.bytes(40);
    const update = { key, value: random.bytes(40), existed: true, before };
    for (const reader of [cache, store]) {
      expect(() => updateTrie(reader, OWNER, [update])).toThrow("flat state and trie differ");
    }
  });

  it("serves applied nodes without the store and forgets deleted ones", () => {
    const store = new MemoryStore();
    const cache = new TrieCache(store, { maxSizeBytes: MEGABYTE });
    const path = Uint8Array.of(1, 2);
    const node = extension(40);
    cache.apply([{ owner: OWNER, path, node, previous: undefined }]);
    expect(cache.get(OWNER, path)).toBe(node);
    expect(cache.get("", path)).toBeUndefined();
    cache.apply([{ owner: OWNER, path, node: undefined, previous: node }]);
    expect(cache.get(OWNER, path)).toBeUndefined();
    expect(cache.sizeBytes).toBe(0);
  });

  it("forgets a deleted node, and shows a replaced one, that it had not read for long", () => {
    const cache = new TrieCache({ get: () => undefined }, { maxSizeBytes: 4_000 });
    const [deleted, replaced] = [Uint8Array.of(1), Uint8Array.of(2)];
    const node = extension(100);
    const apply = (path: Uint8Array) => {
      cache.apply([{ owner: OWNER, path, node, previous: undefined }]);
    };
    apply(deleted);
    apply(replaced);
    // Two more nodes fill the young generation, so that the first ones are in the old one.
    apply(Uint8Array.of(3));
    apply(Uint8Array.of(4));
    const newer = extension(90);
    cache.apply([
      { owner: OWNER, path: deleted, node: undefined, previous: node },
      { owner: OWNER, path: replaced, node: newer, previous: node },
    ]);
    expect(cache.get(OWNER, deleted)).toBeUndefined();
    expect(cache.get(OWNER, replaced)).toBe(newer);
  });

  it("forgets a branch or an extension that becomes a leaf", () => {
    const cache = new TrieCache({ get: () => undefined }, { maxSizeBytes: MEGABYTE });
    const path = Uint8Array.of(1);
    const [node, leaf] = [extension(40), encodeLeaf(new Uint8Array(32), 1, new Uint8Array(40))];
    cache.apply([{ owner: OWNER, path, node, previous: undefined }]);
    cache.apply([{ owner: OWNER, path, node: leaf, previous: node }]);
    expect(cache.get(OWNER, path)).toBeUndefined();
  });

  it("keeps what is read often while what is read once passes through", () => {
    const hot = Uint8Array.of(15);
    let hotReads = 0;
    const store = {
      get(_owner: string, path: Uint8Array): Uint8Array {
        if (path.length === 1) hotReads += 1;
        return extension(500);
      },
    };
    const cache = new TrieCache(store, { maxSizeBytes: 100_000 });
    for (let index = 0; index < 4_096; index++) {
      cache.get(OWNER, Uint8Array.of(index >>> 8, (index >>> 4) & 15, index & 15));
      cache.get(OWNER, hot);
    }
    expect(hotReads).toBe(1);
    expect(cache.sizeBytes).toBeLessThanOrEqual(100_000);
  });
});
