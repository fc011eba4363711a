import { createMPT } from "@ethereumjs/mpt";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { keccak256 as ethersKeccak256, toUtf8Bytes } from "ethers";
import { EMPTY_TRIE_ROOT, hexToBytes } from "../../../chain/hex.js";
import { emptyTrieReader, type TrieUpdate, updateTrie } from "../../../node/state/trie.js";
import { MemoryStore, placeOf, Random, seedOf, toHex } from "./trie-fixtures.js";

const OWNER = "0x00000000000000000000000000000000000000aa";

let seed = 1;
beforeAll(() => {
  seed = seedOf("trie");
});

function secure(key: Uint8Array, value: Uint8Array | undefined): TrieUpdate {
  return { key: hexToBytes(ethersKeccak256(key)), value };
}

function key32(lastByte: number, firstByte = 0): Uint8Array {
  const key = new Uint8Array(32).fill(0x11);
  key[0] = firstByte;
  key[31] = lastByte;
  return key;
}

/** The nodes that a trie with exactly these entries has when it is built at once. */
function freshDump(entries: readonly TrieUpdate[]): [string, string][] {
  const store = new MemoryStore();
  store.apply(updateTrie(emptyTrieReader, OWNER, entries).writes);
  return store.dump(OWNER);
}

/** Applies batches to our trie, to @ethereumjs/mpt and to a plain map, and compares after each. */
async function compareOverBatches(options: {
  readonly random: Random;
  readonly pool: readonly Uint8Array[];
  readonly batches: number;
  readonly batchSize: number;
}): Promise<number> {
  const { random, pool } = options;
  const store = new MemoryStore();
  const oracle = await createMPT();
  const entries = new Map<string, TrieUpdate>();
  let applied = 0;
  for (let round = 0; round < options.batches; round++) {
    const deletePercent = random.pick([10, 40, 60, 100]);
    const batch = random.batch(pool, 1 + random.below(options.batchSize), deletePercent);
    applied += batch.length;
    const { root, writes } = updateTrie(store, OWNER, batch);
    for (const { owner, path, node, previous } of writes) {
      const before = store.nodes.get(placeOf(owner, path));
      expect({ round, before: previous && toHex(previous) }).toEqual({ round, before });
      expect({ round, same: node && toHex(node) === before }).not.toEqual({ round, same: true });
    }
    store.apply(writes);
    for (const update of batch) {
      await oracle.put(update.key, update.value ?? new Uint8Array(0));
      if (update.value === undefined) entries.delete(toHex(update.key));
      else entries.set(toHex(update.key), update);
    }
    expect({ round, root }).toEqual({ round, root: `0x${toHex(oracle.root())}` });
    const nodes = freshDump([...entries.values()]);
    expect({ round, nodes: store.dump(OWNER) }).toEqual({ round, nodes });
  }
  return applied;
}

describe("updateTrie", () => {
  it("equals @ethereumjs/mpt, without stale nodes, over random batches", async () => {
    const random = new Random(seed);
    const pool = Array.from({ length: 400 }, () => random.bytes(32));
    const applied = await compareOverBatches({ random, pool, batches: 60, batchSize: 60 });
    expect(applied).toBeGreaterThan(1_000);
  });

  it("equals @ethereumjs/mpt where crowded keys split, join and embed nodes", async () => {
    const random = new Random(seed + 1);
    for (const poolSize of [2, 5, 12, 40, 120]) {
      const pool = random.crowdedKeys(poolSize);
      await compareOverBatches({ random, pool, batches: 60, batchSize: Math.min(poolSize, 30) });
    }
  });

  it("gives geth's root of the secure trie after puts and deletes (TestSecureDelete)", () => {
    const steps: [string, string][] = [
      ["do", "verb"],
      ["ether", "wookiedoo"],
      ["horse", "stallion"],
      ["shaman", "horse"],
      ["doge", "coin"],
      ["ether", ""],
      ["dog", "puppy"],
      ["shaman", ""],
    ];
    const store = new MemoryStore();
    let root: string = EMPTY_TRIE_ROOT;
    for (const [name, text] of steps) {
      const value = text === "" ? undefined : toUtf8Bytes(text);
      const change = updateTrie(store, OWNER, [secure(toUtf8Bytes(name), value)]);
      store.apply(change.writes);
      root = change.root;
    }
    expect(root).toBe("0x29b235a58c3c25ab83010c327d5932bcf05324b7d6b1185e650798034783ca9d");
  });

  it("gives the root of ethereum/tests hex_encoded_securetrie_test, test1", () => {
    const empty = "a056e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";
    const noCode = "a0c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
    const code = "a004bccc5d94f4d1f99aab44369a910179931772f2a5c001c3229f57831c102769";
    const storage = "a0ba4b47865c55a341a4a78759bb913cd15c3ee8eaf30a62fa8d1c8863113d84e8";
    const accounts: [string, string][] = [
      ["a94f5374fce5edbc8e2a8697c15331677e6ebf0b", `f848018405f446a7${empty}${noCode}`],
      ["095e7baea6a6c7c4c2dfeb977efac326af552d87", `f8440101${empty}${code}`],
      ["d2571607e241ecf590ed94b12d87c94babe36db6", `f8440180${storage}${noCode}`],
      ["62c01474f089b07dae603491675dc5b5748f7049", `f8448080${empty}${noCode}`],
      ["2adc25665018aa1fe0e6bc666dac8fc2697ff9ba", `f8478083019a59${empty}${noCode}`],
    ];
    const updates = accounts.map(([address, rlp]) =>
      secure(hexToBytes(`0x${address}`), hexToBytes(`0x${rlp}`)),
    );
    expect(updateTrie(emptyTrieReader, "", updates).root).toBe(
      "0x730a444e08ab4b8dee147c9b232fc52d34a223d600031c1e9d25bfc985cbd797",
    );
  });

  it("stores a short root, and nothing for nodes that fit into their parent", () => {
    const value = Uint8Array.of(1);
    // Two one-nibble leaves below 63 shared nibbles: extension, embedded branch, embedded leaves.
    const pair = [
      { key: key32(0x10), value },
      { key: key32(0x11), value },
    ];
    const { writes } = updateTrie(emptyTrieReader, OWNER, pair);
    expect(writes.map(({ path }) => path.length)).toEqual([0]);
    // The same pair below a root branch: its leaves stay embedded, its extension is stored.
    const beside = { key: key32(0x10, 0xf0), value };
    const { writes: more } = updateTrie(emptyTrieReader, OWNER, [...pair, beside]);
    expect(more.map(({ path }) => [...path])).toEqual([[0], [15], []]);
  });

  it("returns to the empty root and an empty store when every key is deleted", () => {
    const random = new Random(seed + 2);
    const keys = [...random.crowdedKeys(50), random.bytes(32)];
    const store = new MemoryStore();
    const puts = keys.map((key) => ({ key, value: random.value() }));
    store.apply(updateTrie(store, OWNER, puts).writes);
    const deletes = keys.map((key) => ({ key, value: undefined }));
    const { root, writes } = updateTrie(store, OWNER, deletes);
    store.apply(writes);
    expect(root).toBe(EMPTY_TRIE_ROOT);
    expect(store.nodes.size).toBe(0);
  });

  it("changes nothing for an empty batch, a repeated value or the delete of an absent key", () => {
    const random = new Random(seed + 3);
    const keys = random.crowdedKeys(40);
    const store = new MemoryStore();
    const present = keys.slice(0, 30).map((key) => ({ key, value: random.value() }));
    const { root, writes } = updateTrie(store, OWNER, present);
    store.apply(writes);
    const absent = keys.slice(30).map((key) => ({ key, value: undefined }));
    expect(updateTrie(store, OWNER, [])).toEqual({ root, writes: [] });
    expect(updateTrie(store, OWNER, present)).toEqual({ root, writes: [] });
    expect(updateTrie(store, OWNER, absent)).toEqual({ root, writes: [] });
    expect(updateTrie(emptyTrieReader, OWNER, absent)).toEqual({
      root: EMPTY_TRIE_ROOT,
      writes: [],
    });
  });

  it("gives the same outcome for any order of the updates and keeps the caller's array", () => {
    const random = new Random(seed + 4);
    const updates = random.crowdedKeys(60).map((key) => ({ key, value: random.value() }));
    const shuffled = updates.toSorted(() => random.below(3) - 1);
    const order = [...shuffled];
    expect(updateTrie(emptyTrieReader, OWNER, shuffled)).toEqual(
      updateTrie(emptyTrieReader, OWNER, updates),
    );
    expect(shuffled).toEqual(order);
  });

  it("leaves no trace of an abandoned batch", () => {
    const random = new Random(seed + 5);
    const pool = random.crowdedKeys(60);
    const store = new MemoryStore();
    store.apply(updateTrie(store, OWNER, random.batch(pool, 60, 0)).writes);
    const before = store.dump(OWNER);
    const next = random.batch(pool, 30, 50);
    updateTrie(store, OWNER, random.batch(pool, 40, 50));
    expect(store.dump(OWNER)).toEqual(before);
    const copy = new MemoryStore();
    for (const [place, node] of before) copy.nodes.set(place, node);
    expect(updateTrie(store, OWNER, next)).toEqual(updateTrie(copy, OWNER, next));
  });

  it("keeps the tries of different owners apart", () => {
    const random = new Random(seed + 6);
    const store = new MemoryStore();
    const roots = ["", "m", OWNER].map((owner) => {
      const { root, writes } = updateTrie(store, owner, random.batch(random.crowdedKeys(9), 9, 0));
      store.apply(writes);
      return root;
    });
    expect(["", "m", OWNER].map((owner) => updateTrie(store, owner, []).root)).toEqual(roots);
  });

  it("refuses short keys, empty values and a key named twice", () => {
    const value = Uint8Array.of(1);
    const bad: TrieUpdate[][] = [
      [{ key: new Uint8Array(31), value }],
      [{ key: new Uint8Array(32), value: new Uint8Array(0) }],
      [
        { key: new Uint8Array(32), value },
        { key: key32(1), value },
        { key: new Uint8Array(32), value: undefined },
      ],
    ];
    for (const updates of bad) {
      expect(() => updateTrie(emptyTrieReader, OWNER, updates)).toThrow(
        expect.objectContaining({ code: "INVALID_TRIE_UPDATE" }),
      );
    }
  });

  it("stops at a store that lost a node or holds other bytes, instead of inventing a root", () => {
    const random = new Random(seed + 7);
    const pool = Array.from({ length: 300 }, () => random.bytes(32));
    const store = new MemoryStore();
    const puts = pool.map((key) => ({ key, value: random.bytes(70) }));
    store.apply(updateTrie(store, OWNER, puts).writes);
    const place = placeOf(OWNER, Uint8Array.of(3));
    const node = store.nodes.get(place) ?? "";
    store.nodes.delete(place);
    const changed = puts.map(({ key }) => ({ key, value: Uint8Array.of(9) }));
    expect(() => updateTrie(store, OWNER, changed)).toThrow(
      expect.objectContaining({ code: "TRIE_NODE_MISSING" }),
    );
    for (const broken of [node.slice(0, -2), `80${node}`, `${node}00`, node.replace("a0", "a1")]) {
      store.nodes.set(place, broken);
      expect(() => updateTrie(store, OWNER, changed)).toThrow(
        expect.objectContaining({ code: "INVALID_TRIE_NODE" }),
      );
    }
  });
});
