/**
 * Tries of the past by their reverse diffs, held against what the store had at each height: nodes
 * that were kept whole beside it, for blocks of one change and of thousands.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { encodeRlp, type RlpStructuredDataish } from "ethers";
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { type TrieUpdate, updateTrie } from "../../../node/state/trie.js";
import {
  type Database,
  KEY_SPACE,
  openDatabase,
  storeKey,
  type StoreWrite,
} from "../../../node/store/database.js";
import { listChange, withItems } from "../../../node/store/tries/list-change.js";
import { StoreBase } from "../../../node/store/store-base.js";
import { addTrieWrites } from "../../../node/store/tries/trie-diff.js";
import { SharedWalks } from "../../../node/store/tries/shared-walks.js";
import { withTrieAt } from "../../../node/store/tries/trie-past.js";
import type { TrieNodeReader, TrieWrite } from "../../../node/store/tries/trie-port.js";
import { createTrieReader } from "../../../node/store/tries/trie-store.js";
import { endlessSignal } from "../../../runtime/process/work-owner.js";
import { EndlessWork } from "../../helpers/effort/endless-work.js";
import { MemoryStore, Random, seedOf, toHex } from "../state/trie-fixtures.js";

const OWNERS = ["", "m", `0x${"aa".repeat(20)}`];
/** Changes of each block, by turns: a diff of one page, and of many. */
const CHANGES = [1, 3, 40, 700, 2_500];
const BLOCKS = 24;
/** Works of others that a walk does not wait for. */
const OTHERS = 300;
const { signal } = new AbortController();

/** Nodes of all tries after each block, by name. */
const kept: ReadonlyMap<string, string>[] = [];
let seed = 1;
let folder: string;
let database: Database;
let pools: Map<string, readonly Uint8Array[]>;

function writesOf(
  reader: Pick<Database, "get">,
  height: number,
  changes: readonly TrieWrite[],
): StoreWrite[] {
  const writes: StoreWrite[] = [];
  const add = (write: StoreWrite) => void writes.push(write);
  allAtOnce(addTrieWrites({ database: reader, keepsAll: true, add }, height, changes));
  return writes;
}

beforeAll(async () => {
  seed = seedOf("reverse diffs");
  const random = new Random(seed);
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-diff-"));
  database = await openDatabase(folder);
  pools = new Map(
    OWNERS.map((owner) => {
      const spread = Array.from({ length: 3_000 }, () => random.bytes(32));
      return [owner, [...spread, ...random.crowdedKeys(60)]];
    }),
  );
  for (let height = 0; height < BLOCKS; height++) {
    const changes = OWNERS.flatMap((owner) => {
      const count = height === 0 ? 2_000 : random.pick(CHANGES);
      const batch = random.batch(pools.get(owner) ?? [], count, random.pick([0, 0, 10, 90]));
      return updateTrie(createTrieReader(database), owner, batch).writes;
    });
    const writes = writesOf(database, height, changes);
    await database.write(writes, { durable: false });
    kept.push(await nodesNow());
  }
});

afterAll(async () => {
  await database.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

async function nodesNow(): Promise<Map<string, string>> {
  const nodes = new Map<string, string>();
  const range = { from: storeKey("trieNode"), to: storeKey("trieNode", Buffer.alloc(120, 0xff)) };
  for await (const [key, node] of database.entries(range)) {
    nodes.set(key.toString("latin1", 1), toHex(node));
  }
  return nodes;
}

/** Name of a node as it stands in keys of the store (`docs/adr/0003`: owner, a byte, nibbles). */
function nameOf(owner: string, nibbles: Uint8Array): string {
  return `${owner}\u00ff${String.fromCharCode(...nibbles)}`;
}

/** By another encoder than ours. */
function rlp(item: readonly RlpStructuredDataish[]): Buffer {
  return Buffer.from(encodeRlp([...item]).slice(2), "hex");
}

const nibblesOf = (key: Uint8Array): Uint8Array =>
  Uint8Array.from(toHex(key), (digit) => Number.parseInt(digit, 16));

describe("tries after a block of the past", () => {
  it("are what they were, node by node, on the way to any keys", async () => {
    const random = new Random(seed + 1);
    const base = await StoreBase.open(database);
    let compared = 0;
    for (let height = 0; height < BLOCKS; height++) {
      const keys = OWNERS.flatMap((owner) =>
        Array.from({ length: 12 }, () => {
          const isAny = random.below(4) === 0;
          const key = isAny ? random.bytes(32) : random.pick(pools.get(owner) ?? []);
          return { owner, nibbles: nibblesOf(key) };
        }),
      );
      await withTrieAt(database, keys, { height, base, signal }, async (reader) => {
        for (const { owner, nibbles } of keys) {
          for (let depth = 0; depth <= nibbles.length; depth++) {
            const place = nibbles.subarray(0, depth);
            const node = reader.get(owner, place);
            const was = kept[height]?.get(nameOf(owner, place));
            expect({ height, owner, place, node: node && toHex(node) }).toEqual({
              height,
              owner,
              place,
              node: was,
            });
            if (was !== undefined) compared += 1;
          }
        }
      });
    }
    expect(compared).toBeGreaterThan(BLOCKS * OWNERS.length * 12);
  });

  it("are told by a third of the bytes that whole nodes would take, of a large trie", () => {
    const random = new Random(seed + 3);
    const store = new MemoryStore();
    const entry = (): TrieUpdate => ({ key: random.bytes(32), value: random.bytes(70) });
    const entries = Array.from({ length: 20_000 }, entry);
    store.apply(updateTrie(store, "", entries).writes);
    const changed = entries.slice(0, 200).map(({ key }) => ({ key, value: random.bytes(70) }));
    const { writes } = updateTrie(store, "", changed);
    const told = writesOf({ get: () => undefined }, 2, writes);
    const pages = told.filter(({ key }) => key[0] === KEY_SPACE.trieDiffPage);
    const sumOf = (parts: readonly (Uint8Array | undefined)[]) =>
      parts.reduce((sum, part) => sum + (part?.length ?? 0), 0);
    const wholeBytes = sumOf(writes.map(({ previous }) => previous));
    expect(wholeBytes).toBeGreaterThan(100_000);
    expect(sumOf(pages.map(({ value }) => value))).toBeLessThan(wholeBytes / 3);
  });

  it("are refused as damaged where a mask does not fit its items, or a node is gone", async () => {
    const base = await StoreBase.open(database);
    const key = { owner: "", nibbles: new Uint8Array(64) };
    const read = () =>
      withTrieAt(database, [key], { height: BLOCKS, base, signal }, async (reader) =>
        reader.get("", new Uint8Array(0)),
      );
    const name = Buffer.of(0xff);
    const page = storeKey("trieDiffPage", heightBytes(BLOCKS + 1), Buffer.alloc(4));
    const names = storeKey("trieDiff", heightBytes(BLOCKS + 1));
    const put = async (told: RlpStructuredDataish[]) => {
      const [first] = told;
      if (first === undefined) throw new Error("a node has a name");
      const writes = [
        { key: page, value: rlp([told]) },
        { key: names, value: rlp([first]) },
      ];
      await database.write(writes, { durable: false });
    };
    for (const told of [
      [name, Buffer.of(3), [Buffer.of(1)]],
      [name, Buffer.of(1), [Buffer.of(1), Buffer.of(2)]],
      [name, [Buffer.of(1)], [Buffer.of(1)]],
      [name],
      [name, Buffer.of(1), [Buffer.of(1)], Buffer.of(1)],
    ]) {
      await put(told);
      await expect(read()).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    }
    const nowhere = { owner: "nobody", nibbles: new Uint8Array(64) };
    await put([Buffer.from("nobody\u00ff", "latin1"), Buffer.of(1), [Buffer.of(1)]]);
    await expect(
      withTrieAt(database, [nowhere], { height: BLOCKS, base, signal }, async (reader) =>
        reader.get("nobody", new Uint8Array(0)),
      ),
    ).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await database.write(
      [
        { key: page, value: undefined },
        { key: names, value: undefined },
      ],
      { durable: false },
    );
  });
});

describe("proofs of one block that are asked for at the same time", () => {
  /** The store, some of whose methods are others. */
  function changed(methods: Partial<Database>): Database {
    const whole: Partial<Database> = {
      get: (...read) => database.get(...read),
      entries: (range) => database.entries(range),
      snapshot: () => database.snapshot(),
    };
    return Object.assign(Object.create(database), whole, methods);
  }

  /** A store that counts the ways through its diffs. */
  function counted(): { readonly counting: Database; readonly walks: () => number } {
    let walks = 0;
    const counting = changed({
      entries(range) {
        walks += 1;
        return database.entries(range);
      },
    });
    return { counting, walks: () => walks };
  }
  const height = 3;
  const someKey = (random: Random) => {
    const owner = random.pick(OWNERS);
    return { owner, nibbles: nibblesOf(random.pick(pools.get(owner) ?? [])) };
  };
  type Key = ReturnType<typeof someKey>;
  /** Nodes on the way to a key, and what they were. */
  const wayTo = (reader: TrieNodeReader, { owner, nibbles }: Key) =>
    Array.from(nibbles, (_, depth) => {
      const node = reader.get(owner, nibbles.subarray(0, depth));
      return node && toHex(node);
    });
  const keptWay = ({ owner, nibbles }: Key) =>
    Array.from(nibbles, (_, depth) => kept[height]?.get(nameOf(owner, nibbles.subarray(0, depth))));

  it("share a way through the diffs, and each gets what was", async () => {
    const random = new Random(seed + 4);
    const { counting, walks } = counted();
    const shared = new SharedWalks(counting, await StoreBase.open(database));
    const keys = Array.from({ length: 300 }, () => someKey(random));
    const ask = (key: Key) =>
      shared.with([key], { height, signal }, async (reader) => wayTo(reader, key));
    const first = Promise.all(keys.slice(0, 200).map(ask));
    // These come while that way is gone.
    await new Promise((resolve) => setImmediate(resolve));
    const ways = (await Promise.all([first, Promise.all(keys.slice(200).map(ask))])).flat();
    expect(ways).toEqual(keys.map(keptWay));
    expect(walks()).toBe(2);
    await ask(keys[0] ?? someKey(random));
    expect(walks()).toBe(3);
  });

  it("wait in the line of who asks for them", async () => {
    const random = new Random(seed + 8);
    const shared = new SharedWalks(database, await StoreBase.open(database));
    const key = someKey(random);
    const endless = new EndlessWork();
    endless.start(OTHERS, { client: "" });
    await endless.begun();
    try {
      const own = { height, signal: endlessSignal({ client: "10.0.0.2" }) };
      const turns = await endless.during(() => shared.with([key], own, async () => undefined));
      // Beside all others it would have one turn in so many.
      expect(turns).toBeLessThan(OTHERS);
    } finally {
      await endless.end();
    }
  });

  it("do not go all together where their keys are too many", async () => {
    const random = new Random(seed + 5);
    const { counting, walks } = counted();
    const shared = new SharedWalks(counting, await StoreBase.open(database));
    const keys = Array.from({ length: 1_500 }, () => someKey(random));
    const ask = () =>
      shared.with(keys, { height, signal }, async (reader) =>
        wayTo(reader, keys[7] ?? someKey(random)),
      );
    const ways = await Promise.all([ask(), ask(), ask()]);
    expect(ways).toEqual(Array(3).fill(keptWay(keys[7] ?? someKey(random))));
    expect(walks()).toBe(3);
  });

  it("end each for itself: one that nobody wants any more, and one that fails", async () => {
    const random = new Random(seed + 6);
    const shared = new SharedWalks(database, await StoreBase.open(database));
    const key = someKey(random);
    const gone = new AbortController();
    const asked = [
      shared.with([key], { height, signal: gone.signal }, async () => {
        gone.signal.throwIfAborted();
      }),
      shared.with([key], { height, signal }, async () => {
        throw new Error("of this one");
      }),
      shared.with([key], { height, signal }, async (reader) => wayTo(reader, key)),
    ];
    gone.abort(new Error("gone"));
    expect(await Promise.allSettled(asked)).toEqual([
      { status: "rejected", reason: new Error("gone") },
      { status: "rejected", reason: new Error("of this one") },
      { status: "fulfilled", value: keptWay(key) },
    ]);
  });

  it("are given up where nobody is left who wants them, and by what the store says", async () => {
    const random = new Random(seed + 7);
    const base = await StoreBase.open(database);
    const { counting, walks } = counted();
    const shared = new SharedWalks(counting, base);
    const gone = new AbortController();
    const ask = (own: AbortSignal) =>
      shared.with([someKey(random)], { height, signal: own }, async () => "used");
    const asked = [ask(gone.signal), ask(gone.signal)];
    gone.abort(new Error("gone"));
    expect(await Promise.allSettled(asked)).toEqual(
      asked.map(() => ({ status: "rejected", reason: new Error("gone") })),
    );
    const damaged = changed({ get: () => undefined });
    const broken = new SharedWalks(damaged, base);
    const use = async () => "used";
    await expect(broken.with([someKey(random)], { height, signal }, use)).rejects.toMatchObject({
      code: "STORE_CORRUPT",
    });
    // What failed is in nobody's way.
    expect(await ask(signal)).toBe("used");
    expect(walks()).toBe(1);
  });
});

describe("a change of a list", () => {
  it("is undone to the byte, for lists by another encoder", () => {
    const random = new Random(seed + 2);
    let named = 0;
    for (let round = 0; round < 2_000; round++) {
      const count = random.pick([2, 5, 17, 20]);
      const item = () => random.pick([new Uint8Array(0), random.bytes(32), random.value()]);
      const before = Array.from({ length: count }, item);
      const after = before.map((one) => (random.below(count) < 3 ? item() : one));
      if (random.below(10) === 0) after.push(item());
      const [was, is] = [rlp(before), rlp(after)];
      const change = listChange(was, is);
      if (change === undefined) continue;
      named += 1;
      const items: (Uint8Array | undefined)[] = [];
      let next = 0;
      for (let at = 0; at < 16; at++) {
        if ((change.mask & (1 << at)) !== 0) items[at] = change.items[next++];
      }
      expect(next).toBe(change.items.length);
      expect(toHex(withItems(is, items))).toBe(toHex(was));
    }
    expect(named).toBeGreaterThan(500);
  });

  it("is told whole where that is hardly longer, and where it cannot be named", () => {
    const hashes = (first: number, count: number) =>
      Array.from({ length: count }, (_, at) => new Uint8Array(32).fill(first + at));
    const branch = [...hashes(1, 16), new Uint8Array(0)];
    const encoded = rlp(branch);
    const changed = (count: number) =>
      rlp(branch.map((item, at) => (at < count ? new Uint8Array(32).fill(0xee) : item)));
    expect(listChange(encoded, changed(1))).toMatchObject({ mask: 1 });
    expect(listChange(encoded, changed(12))).toMatchObject({ mask: 0xfff });
    expect(listChange(encoded, changed(13))).toBeUndefined();
    expect(listChange(encoded, rlp(branch.with(16, Buffer.of(1))))).toBeUndefined();
    expect(listChange(encoded, rlp(branch.slice(0, 2)))).toBeUndefined();
    expect(() => listChange(encoded, Buffer.of(0x80))).toThrow(/list/);
  });
});
