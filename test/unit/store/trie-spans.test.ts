/**
 * Spans of reverse diffs: what they tell of the past is what the blocks' own diffs tell, and what the
 * nodes were; they are whole or not there at all; and a proof reads a bounded number of records.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  createMPT,
  createMPTFromProof,
  type MerklePatriciaTrie,
  verifyMerkleProof,
} from "@ethereumjs/mpt";
import { encodeRlp } from "ethers";
import { heightBytes, readHeight } from "../../../chain/encoding/height-bytes.js";
import { keccak256 } from "../../../chain/hashes.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { updateTrie } from "../../../node/state/trie.js";
import { proveKey } from "../../../node/state/trie-proof.js";
import {
  type Database,
  KEY_SPACE,
  openDatabase,
  storeKey,
  type StoreWrite,
} from "../../../node/store/database.js";
import { baseWrites, StoreBase } from "../../../node/store/store-base.js";
import { SpanBuilder, type SpanBuilderOptions } from "../../../node/store/tries/span-builder.js";
import { addTrieWrites } from "../../../node/store/tries/trie-diff.js";
import { withTrieAt } from "../../../node/store/tries/trie-past.js";
import { diffKey } from "../../../node/store/tries/trie-spans.js";
import { createTrieReader } from "../../../node/store/tries/trie-store.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { Random, seedOf, toHex } from "../state/trie-fixtures.js";

const OWNERS = ["", "m", `0x${"aa".repeat(20)}`];
const CHANGES = [1, 3, 20, 150];
const FAN_OUT = 4;
/** Three levels, and some of each beyond them. */
const BLOCKS = 2 * FAN_OUT ** 3 + FAN_OUT ** 2 + FAN_OUT + 2;
const { signal } = new AbortController();
const log = createLogger({ component: "test", level: "silent" });
/** No slice is ever too long. */
const clock = { ...systemClock, monotonicMs: () => 0 };

let seed: number;
let folder: string;
let database: Database;
let base: StoreBase;

/** Opens a store, as it is in another folder or empty. */
async function openCopy(original?: string): Promise<void> {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-spans-"));
  if (original !== undefined) fs.cpSync(original, folder, { recursive: true });
  database = await openDatabase(folder);
  base = await StoreBase.open(database);
}

afterEach(async () => {
  await database.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

function builder(head: number, options: Partial<SpanBuilderOptions> = {}): SpanBuilder {
  const all = { database, base, archive: true, head: () => head, clock, log, fanOut: FAN_OUT };
  return new SpanBuilder({ ...all, ...options });
}

/** The store, some of whose methods are others. */
function changed(methods: Partial<Database>): Database {
  return Object.assign(Object.create(database), methods);
}

const nibblesOf = (key: Uint8Array): Uint8Array =>
  Uint8Array.from(toHex(key), (digit) => Number.parseInt(digit, 16));

interface Key {
  readonly owner: string;
  readonly key: Uint8Array;
}

/** What is proven of keys after a block, and how many records of diffs were read for it. */
async function proofsAt(
  height: number,
  keys: readonly Key[],
  { fanOut = FAN_OUT, from = database }: { fanOut?: number; from?: Database } = {},
): Promise<{ proofs: string[][]; records: number }> {
  let records = 0;
  const counting = Object.assign(Object.create(from), {
    get(...read: Parameters<Database["get"]>) {
      records += 1;
      return from.get(...read);
    },
    async *entries(range: Parameters<Database["entries"]>[0]) {
      for await (const entry of from.entries(range)) {
        records += 1;
        yield entry;
      }
    },
  });
  const wanted = keys.map(({ owner, key }) => ({ owner, nibbles: nibblesOf(key) }));
  const at = { height, base, signal, fanOut };
  const proofs = await withTrieAt(counting, wanted, at, async (reader) => {
    return keys.map(({ owner, key }) => proveKey(reader, owner, key).map((node) => toHex(node)));
  });
  return { proofs, records };
}

/** So far apart that no span is ever used: the walk over all diffs. */
const WALK = { fanOut: 2 ** 40 };

describe("spans of tries that change at random", () => {
  let pools: Map<string, readonly Uint8Array[]>;
  /** Another implementation's tries, and the roots that they had. */
  let others: Map<string, MerklePatriciaTrie>;
  let roots: Map<string, Uint8Array>[];

  let original: string;

  beforeAll(async () => {
    seed = seedOf("spans");
    original = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-spans-"));
    const chain = await openDatabase(original);
    const random = new Random(seed);
    const spread = () => Array.from({ length: 600 }, () => random.bytes(32));
    pools = new Map(OWNERS.map((owner) => [owner, [...spread(), ...random.crowdedKeys(40)]]));
    others = new Map();
    for (const owner of OWNERS) others.set(owner, await createMPT());
    roots = [];
    for (let height = 0; height <= BLOCKS; height++) {
      const writes: StoreWrite[] = [];
      const changes = [];
      for (const owner of OWNERS) {
        const count = height === 0 ? 400 : random.pick(CHANGES);
        const batch = random.batch(pools.get(owner) ?? [], count, random.pick([0, 0, 10, 95]));
        changes.push(...updateTrie(createTrieReader(chain), owner, batch).writes);
        const other = others.get(owner);
        for (const { key, value } of batch) await other?.put(key, value ?? null);
      }
      const add = (write: StoreWrite) => void writes.push(write);
      allAtOnce(addTrieWrites({ database: chain, keepsAll: true, add }, height, changes));
      await chain.write(writes, { durable: false });
      roots.push(new Map([...others].map(([owner, trie]) => [owner, trie.root()])));
    }
    await chain.close();
  });

  afterAll(() => fs.rmSync(original, { recursive: true, force: true }));

  beforeEach(() => openCopy(original));

  const someKeys = (random: Random): Key[] =>
    OWNERS.flatMap((owner) =>
      Array.from({ length: 6 }, () => {
        const key = random.below(6) === 0 ? random.bytes(32) : random.pick(pools.get(owner) ?? []);
        return { owner, key };
      }),
    );

  async function spansNow(): Promise<string[]> {
    const found: string[] = [];
    const to = storeKey("trieSpan", Buffer.alloc(12, 0xff));
    for await (const key of database.keys({ from: storeKey("trieSpan"), to })) {
      found.push(`${key[1]}:${readHeight(key, 2)}`);
    }
    return found;
  }

  async function pagesNow(): Promise<number> {
    let count = 0;
    const to = storeKey("trieSpanPage", Buffer.alloc(16, 0xff));
    for await (const key of database.keys({ from: storeKey("trieSpanPage"), to })) {
      if (key.length > 0) count += 1;
    }
    return count;
  }

  const expectedSpans = (head: number, from = 0): string[] =>
    [1, 2, 3].flatMap((level) => {
      const blocks = FAN_OUT ** level;
      const starts = [];
      for (let after = 0; after + blocks <= head; after += blocks) starts.push(after);
      return starts.filter((after) => after >= from).map((after) => `${level}:${after}`);
    });

  it("prove every height as the walk over all diffs does, and as another implementation says", async () => {
    const random = new Random(seed + 1);
    const asked = Array.from({ length: BLOCKS + 1 }, () => someKeys(random));
    const walked = [];
    for (const [height, keys] of asked.entries()) walked.push(await proofsAt(height, keys, WALK));
    await builder(BLOCKS).round(signal);
    expect(await spansNow()).toEqual(expectedSpans(BLOCKS));
    for (const [height, keys] of asked.entries()) {
      const { proofs, records } = await proofsAt(height, keys);
      expect({ height, proofs }).toEqual({ height, proofs: walked[height]?.proofs });
      if (height === 1) expect(records).toBeLessThan((walked[height]?.records ?? 0) / 2);
      for (const [index, { owner, key }] of keys.entries()) {
        const nodes = (proofs[index] ?? []).map((node) =>
          Uint8Array.from(Buffer.from(node, "hex")),
        );
        const root = roots[height]?.get(owner);
        const other = others.get(owner);
        if (root === undefined || other === undefined) throw new Error("no such trie");
        other.root(root);
        const value = await other.get(key);
        if (nodes.length === 0) expect(value).toBeNull();
        else {
          await createMPTFromProof(nodes, { root });
          expect(await verifyMerkleProof(key, nodes)).toEqual(value);
        }
      }
    }
  });

  it("are the same whenever they are made, and never made twice", async () => {
    for (let head = 0; head <= BLOCKS; head += 3) await builder(head).round(signal);
    const one = builder(BLOCKS);
    await one.round(signal);
    const records = async () => {
      const found: string[] = [];
      for (const space of ["trieSpan", "trieSpanPage"] as const) {
        const range = { from: storeKey(space), to: storeKey(space, Buffer.alloc(16, 0xff)) };
        for await (const [key, value] of database.entries(range)) {
          found.push(toHex(key) + toHex(keccak256(value)));
        }
      }
      return found;
    };
    const stepwise = await records();
    await builder(BLOCKS, { archive: false }).run(signal);
    expect(await records()).toEqual([]);
    await builder(BLOCKS).round(signal);
    expect(await records()).toEqual(stepwise);
    let writes = 0;
    const counting = changed({
      write(...args) {
        writes += 1;
        return database.write(...args);
      },
    });
    await builder(BLOCKS, { database: counting }).round(signal);
    expect(writes).toBe(0);
  });

  it("go on after an end at any write, and are not read before they are whole", async () => {
    const random = new Random(seed + 2);
    const keys = someKeys(random);
    const walked: Awaited<ReturnType<typeof proofsAt>>[] = [];
    for (let height = 0; height <= BLOCKS; height += 5) {
      walked.push(await proofsAt(height, keys, WALK));
    }
    const check = async () => {
      for (const [index, { proofs }] of walked.entries()) {
        expect((await proofsAt(index * 5, keys)).proofs).toEqual(proofs);
      }
    };
    // Each page by itself, and an end behind every few writes.
    let ends = 0;
    const makeAll = (left: number) => {
      const dying = changed({
        async write(writes, options) {
          for (const write of writes) {
            if (left === 0) throw new Error("killed");
            left -= 1;
            await database.write([write], options);
          }
        },
      });
      return builder(BLOCKS, { database: dying })
        .round(signal)
        .then(
          () => "made",
          (error: Error) => error.message,
        );
    };
    while ((await makeAll(7 + ends)) === "killed") {
      ends += 1;
      if (ends % 4 === 0) await check();
    }
    expect(ends).toBeGreaterThan(8);
    expect(await spansNow()).toEqual(expectedSpans(BLOCKS));
    await check();
  });

  it("go with the heights that are refused, those in the making too", async () => {
    const random = new Random(seed + 3);
    const keys = someKeys(random);
    const spans = builder(BLOCKS);
    await spans.round(signal);
    const pages = await pagesNow();
    await base.advance({ historyBase: 21, proofBase: 21 }, []);
    const walked = await proofsAt(21, keys, WALK);
    await spans.round(signal);
    expect(await spansNow()).toEqual(expectedSpans(BLOCKS, 21));
    expect(await pagesNow()).toBeLessThan(pages);
    expect((await proofsAt(21, keys)).proofs).toEqual(walked.proofs);
    // Made anew from there, with the base raised and diffs deleted in the middle of it.
    await builder(BLOCKS, { archive: false }).run(signal);
    let reads = 0;
    const raising = changed({
      get(key, snapshot) {
        reads += 1;
        if (reads === 10) {
          void base.advance({ historyBase: 50, proofBase: 50 }, []);
        }
        if (base.get().proofBase === 50 && readHeight(key, 1) < 50) return undefined;
        return database.get(key, snapshot);
      },
    });
    await builder(BLOCKS, { database: raising }).round(signal);
    expect(await spansNow()).toEqual(expectedSpans(BLOCKS, 50));
    expect((await proofsAt(60, keys)).proofs).toEqual((await proofsAt(60, keys, WALK)).proofs);
  });

  it("are none where the window alone is kept, and go on above the oldest proof", async () => {
    await builder(BLOCKS).round(signal);
    await builder(BLOCKS, { archive: false }).run(signal);
    expect(await spansNow()).toEqual([]);
    expect(await pagesNow()).toBe(0);
    await database.write(baseWrites({ proofBase: 30 }), { durable: false });
    base = await StoreBase.open(database);
    await builder(BLOCKS).round(signal);
    expect(await spansNow()).toEqual(expectedSpans(BLOCKS, 30));
  });

  it("are all there again where their deletion was not meant, and ended at any write", async () => {
    await builder(BLOCKS).round(signal);
    const whole = await pagesNow();
    for (let ends = 1; ; ends++) {
      let left = ends;
      const dying = changed({
        keys: (range) => database.keys({ ...range, limit: 5 }),
        async write(writes, options) {
          if (left === 0) throw new Error("killed");
          left -= 1;
          await database.write(writes, options);
        },
      });
      const deleting = builder(BLOCKS, { database: dying, archive: false }).run(signal);
      const end = await deleting.then(
        () => "deleted",
        (error: Error) => error.message,
      );
      await builder(BLOCKS).round(signal);
      expect({ ends, spans: await spansNow() }).toEqual({ ends, spans: expectedSpans(BLOCKS) });
      expect(await pagesNow()).toBe(whole);
      if (end === "deleted") break;
    }
  });

  it("are made again where one is missing of which the next level is made, and those behind it stay", async () => {
    const head = 2 * FAN_OUT ** 2 - 1;
    await builder(head).round(signal);
    const place = { level: 1, after: FAN_OUT * (FAN_OUT + 1) };
    await database.write([{ key: diffKey(place), value: undefined }], { durable: false });
    const written: string[] = [];
    const telling = changed({
      write(writes, options) {
        for (const { key } of writes) {
          if (key[0] === KEY_SPACE.trieSpan) written.push(`${key[1]}:${readHeight(key, 2)}`);
        }
        return database.write(writes, options);
      },
    });
    await builder(head + 1, { database: telling }).round(signal);
    expect(await spansNow()).toEqual(expectedSpans(head + 1));
    expect(written).toEqual([`1:${head + 1 - FAN_OUT}`, `1:${place.after}`, `2:${FAN_OUT ** 2}`]);
  });

  it("end where diffs contradict each other, which the proofs before it do not feel", async () => {
    const name = Buffer.of(0xff);
    const told = [name, Buffer.of(3), [Buffer.of(1)]];
    const page = Buffer.from(encodeRlp([told]).slice(2), "hex");
    const key = storeKey("trieDiffPage", heightBytes(FAN_OUT + 1), Buffer.alloc(4));
    await database.write([{ key, value: page }], { durable: false });
    await expect(builder(BLOCKS).round(signal)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await builder(BLOCKS).run(signal);
    expect(await spansNow()).toEqual(["1:0"]);
    await database.write([{ key: storeKey("trieDiff", heightBytes(6)), value: undefined }], {
      durable: false,
    });
    await expect(builder(BLOCKS).round(signal)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  });
});

describe("a proof of a height long ago", () => {
  /** Above two levels of spans as they are in a node. */
  const HEAD = 66_000;
  /** Most records of each of three levels, on both sides of the longest, and a page of each. */
  const MOST_RECORDS = 2 * 2 * 3 * 256;

  beforeEach(() => openCopy());

  it("reads a bounded number of records, however many blocks there were since", async () => {
    const random = new Random(seedOf("a proof of long ago"));
    const key = random.bytes(32);
    const { writes } = updateTrie(createTrieReader(database), "", [
      { key, value: random.bytes(70) },
      { key: random.bytes(32), value: random.bytes(70) },
    ]);
    const nodes = writes.map(({ path: nibbles, node }) => ({
      key: storeKey("trieNode", Buffer.of(0xff), nibbles),
      value: node,
    }));
    await database.write(nodes, { durable: false });
    // Every block changes an item of the root, which is never told whole.
    const root = Buffer.of(0xff);
    const names = Buffer.from(encodeRlp([root]).slice(2), "hex");
    for (let from = 1; from <= HEAD; from += 1_000) {
      const diffs: StoreWrite[] = [];
      for (let height = from; height < Math.min(from + 1_000, HEAD + 1); height++) {
        const at = heightBytes(height);
        const told = [root, Buffer.of(1), [Buffer.of(...random.bytes(32))]];
        const value = Buffer.from(encodeRlp([told]).slice(2), "hex");
        diffs.push({ key: storeKey("trieDiff", at), value: names });
        diffs.push({ key: storeKey("trieDiffPage", at, Buffer.alloc(4)), value });
      }
      await database.write(diffs, { durable: false });
    }
    await builder(HEAD, { fanOut: 256 }).round(signal);
    let records = 0;
    const counting = changed({
      get(...read) {
        records += 1;
        return database.get(...read);
      },
    });
    const at = { height: 1, base, signal };
    const wanted = [{ owner: "", nibbles: nibblesOf(key) }];
    const readRoot = (from: Database, fanOut: number) =>
      withTrieAt(from, wanted, { ...at, fanOut }, async (reader) =>
        toHex(reader.get("", new Uint8Array(0)) ?? new Uint8Array(0)),
      );
    const found = await readRoot(counting, 256);
    expect(records).toBeLessThan(MOST_RECORDS);
    expect(found).toBe(await readRoot(database, WALK.fanOut));
  });
});
