/**
 * Trie nodes at the tip by path, and what they were before each of the last blocks, so that
 * proofs can be made for recent heights (design point 10).
 */
import { keccak256 } from "../../chain/hashes.js";
import { heightBytes, readHeight } from "../../chain/encoding/height-bytes.js";
import { bytesEqual, type Height } from "../../chain/hex.js";
import {
  decodeRlp,
  encodedRlpItems,
  encodeRlp,
  rlpBytes,
  rlpList,
} from "../../chain/encoding/rlp.js";
import { eachInSteps, sortInSteps, type Steps } from "../../chain/steps/steps.js";
import { breathe } from "../../runtime/process/main-thread.js";
import { type Database, KEY_SPACE, StoreError, storeKey, type StoreWrite } from "./database.js";
import { baseWrites, type StoreBase } from "./store-base.js";
import type { TrieNodeReader, TrieWrite } from "./trie-port.js";

/** Blocks for which proofs are served, the head included, unless the node keeps an archive. */
export const PROOF_WINDOW_BLOCKS = 1_024;

/** The oldest height that can be proven with the window's reverse diffs, with that head. */
export function oldestProofAt(head: Height): Height {
  return Math.max(0, head - PROOF_WINDOW_BLOCKS + 1);
}

const HASH_BYTES = 32;

/** Ends the owner in keys; owners are printable, so it cannot occur in them. */
const SEPARATOR = 0xff;

/** Key of a node: its name is owner and path, unique for each. */
function nodeKey(owner: string, path: Uint8Array): Buffer {
  const key = Buffer.allocUnsafe(owner.length + path.length + 2);
  key[0] = KEY_SPACE.trieNode;
  for (let index = 0; index < owner.length; index++) key[index + 1] = owner.charCodeAt(index);
  key[owner.length + 1] = SEPARATOR;
  for (let index = 0; index < path.length; index++) {
    key[owner.length + 2 + index] = path[index] ?? 0;
  }
  return key;
}

/** The name that a node's key holds. */
const nameIn = (key: Buffer): Buffer => key.subarray(1);

/** Names in the order of their bytes; in JavaScript, because most differ in their first ones. */
function compareNames(left: Uint8Array, right: Uint8Array): number {
  const shorter = Math.min(left.length, right.length);
  for (let index = 0; index < shorter; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

/**
 * Reads the latest nodes straight from the store, each held against the hash in its parent. The
 * checksum of a record alone does not do: level drops a damaged batch of its log without a word,
 * and the node from before it is as whole as the one that is lost.
 */
export function createTrieReader(database: Database): TrieNodeReader {
  const damage = (reason: string) => database.damage(reason);
  return {
    damage,
    get(owner, path, parent, hashOffset = 0) {
      const node = database.get(nodeKey(owner, path));
      if (parent === undefined) return node;
      const expected = parent.subarray(hashOffset, hashOffset + HASH_BYTES);
      if (node !== undefined && bytesEqual(keccak256(node), expected)) return node;
      const place = `${owner || "the accounts"}, path 0x${bytesToNibbleHex(path)}`;
      throw damage(`trieNode of ${place}: it is not the one that its parent names`);
    },
  };
}

function bytesToNibbleHex(path: Uint8Array): string {
  return Array.from(path, (nibble) => nibble.toString(16)).join("");
}

/** Bytes of a page of a reverse diff; a proof reads a page or two of each. */
const DIFF_PAGE_BYTES = 32 * 1024;

/**
 * The writes of a block's trie changes: the new nodes, and one reverse diff with their former
 * versions, sorted by name and in pages; the diff that leaves the window is deleted. In steps.
 */
export function* trieWritesOf(
  database: Pick<Database, "get">,
  height: Height,
  changes: readonly TrieWrite[],
  keepAll: boolean,
): Steps<StoreWrite[]> {
  const writes: StoreWrite[] = [];
  const former: FormerNode[] = [];
  yield* eachInSteps(changes, ({ owner, path, node, previous }) => {
    const key = nodeKey(owner, path);
    writes.push({ key, value: node });
    former.push({ name: nameIn(key), previous: previous ?? NO_NODE });
  });
  const sorted = yield* sortInSteps(former, (left, right) => compareNames(left.name, right.name));
  for (const write of yield* diffWrites(height, sorted)) writes.push(write);
  const oldest = oldestProofAt(height);
  if (!keepAll && oldest > 0) {
    writes.push(...diffDeletions(database, oldest - 1), ...baseWrites({ proofBase: oldest }));
  }
  return writes;
}

const NO_NODE = new Uint8Array(0);

/** A changed node as it was before the block; empty where there was none. */
interface FormerNode {
  readonly name: Buffer;
  readonly previous: Uint8Array;
}

function* diffWrites(height: Height, former: readonly FormerNode[]): Steps<StoreWrite[]> {
  const writes: StoreWrite[] = [];
  const names: Buffer[] = [];
  let page: FormerNode[] = [];
  let sizeBytes = 0;
  const close = () => {
    const [first] = page;
    if (first === undefined) return;
    const value = encodeRlp(page.map(({ name, previous }) => [name, previous]));
    writes.push({ key: diffPageKey(height, names.length), value });
    names.push(first.name);
    [page, sizeBytes] = [[], 0];
  };
  for (const node of former) {
    page.push(node);
    sizeBytes += node.name.length + node.previous.length;
    if (sizeBytes < DIFF_PAGE_BYTES) continue;
    close();
    yield;
  }
  close();
  writes.push({ key: storeKey("trieDiff", heightBytes(height)), value: encodeRlp(names) });
  return writes;
}

function diffDeletions(database: Pick<Database, "get">, height: Height): StoreWrite[] {
  const key = storeKey("trieDiff", heightBytes(height));
  const names = database.get(key);
  if (names === undefined) return [];
  return [
    { key, value: undefined },
    ...rlpList(decodeRlp(names)).map((_, page) => ({
      key: diffPageKey(height, page),
      value: undefined,
    })),
  ];
}

function diffPageKey(height: Height, page: number): Buffer {
  const number = Buffer.allocUnsafe(4);
  number.writeUInt32BE(page);
  return storeKey("trieDiffPage", heightBytes(height), number);
}

/** The writes of new nodes alone, for tries that are built from nothing. */
export function trieNodeWrites(changes: readonly TrieWrite[]): StoreWrite[] {
  return changes.map(({ owner, path, node }) => ({
    key: nodeKey(owner, path),
    value: node,
  }));
}

/** A key of a trie whose path is wanted. */
export interface TrieKey {
  readonly owner: string;
  /** One per byte. */
  readonly nibbles: Uint8Array;
}

/**
 * Hands the nodes on the way to some keys, as they were after a block, to `use`: what the first
 * reverse diff since then that has a node says it was before, else what it is now. Each diff is
 * looked through once for all keys, page by page, and others run in between.
 * @throws HISTORY_PRUNED when the reverse diffs of the blocks since then are not all there; the
 *   signal's reason
 */
export async function withTrieAt<Result>(
  database: Database,
  keys: readonly TrieKey[],
  at: { readonly height: Height; readonly base: StoreBase; readonly signal: AbortSignal },
  use: (reader: TrieNodeReader) => Promise<Result>,
): Promise<Result> {
  at.base.assertProof(at.height);
  const snapshot = database.snapshot();
  try {
    const past = new PastNodes(keys);
    // Oldest first; also blocks above the head that became durable in the meantime.
    const range = {
      from: storeKey("trieDiff", heightBytes(at.height + 1)),
      to: storeKey("trieDiff", heightBytes(Number.MAX_SAFE_INTEGER)),
      snapshot,
    };
    for await (const [key, names] of database.entries(range)) {
      const height = readHeight(key, 1);
      for (const page of past.pagesOf(rlpList(decodeRlp(names)).map(rlpBytes))) {
        await breathe(at.signal);
        const bytes = database.get(diffPageKey(height, page), snapshot);
        if (bytes === undefined) {
          throw new StoreError("STORE_CORRUPT", "a page of a reverse diff is missing", {
            details: { height, page },
          });
        }
        past.learn(bytes);
      }
    }
    return await use({
      get(owner, path) {
        const key = nodeKey(owner, path);
        const known = past.get(nameIn(key));
        if (known === undefined) return database.get(key, snapshot);
        return known.length === 0 ? undefined : known;
      },
    });
  } finally {
    await snapshot.close();
  }
}

/** What nodes on the way to some keys were, as far as the diffs that were looked at tell. */
class PastNodes {
  private readonly nodes = new Map<string, Uint8Array>();
  /** Names that the paths end in, sorted, each with how many of its leading depths are known. */
  private readonly paths: { readonly name: Buffer; readonly rootLength: number; known: number }[];

  constructor(keys: readonly TrieKey[]) {
    this.paths = keys
      .map(({ owner, nibbles }) => {
        const name = nameIn(nodeKey(owner, nibbles));
        return { name, rootLength: name.length - nibbles.length, known: 0 };
      })
      .toSorted((left, right) => compareNames(left.name, right.name));
  }

  /** The node before the first block that changed it; empty: none; undefined: nobody changed it. */
  get(name: Buffer): Uint8Array | undefined {
    return this.nodes.get(name.toString("latin1"));
  }

  /** Pages of a diff that may have nodes that are not known yet, by the names they begin with. */
  pagesOf(firsts: readonly Uint8Array[]): Set<number> {
    const pages = new Set<number>();
    for (const path of this.paths) {
      const deepest = pageOf(firsts, path.name);
      // The names on a path follow each other: from the deepest one's page on it is always that.
      for (let length = path.rootLength + path.known; length <= path.name.length; length++) {
        const page = pageOf(firsts, path.name.subarray(0, length));
        if (page >= 0) pages.add(page);
        if (page === deepest) break;
      }
    }
    return pages;
  }

  /** Takes over what a page of the next diff says. */
  learn(page: Uint8Array): void {
    for (const item of encodedRlpItems(page)) {
      const [name, previous] = rlpList(decodeRlp(item)).map(rlpBytes);
      if (name === undefined || previous === undefined) {
        throw new StoreError("STORE_CORRUPT", "a reverse diff is damaged");
      }
      if (!this.isOnPath(name)) continue;
      const text = Buffer.from(name).toString("latin1");
      if (!this.nodes.has(text)) this.nodes.set(text, previous);
    }
    for (const path of this.paths) {
      while (
        path.rootLength + path.known < path.name.length &&
        this.get(path.name.subarray(0, path.rootLength + path.known)) !== undefined
      ) {
        path.known += 1;
      }
    }
  }

  /** Whether a name begins one of the paths, its owner included. */
  private isOnPath(name: Uint8Array): boolean {
    let [low, high] = [0, this.paths.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const path = this.paths[middle];
      if (path !== undefined && Buffer.compare(path.name, name) < 0) low = middle + 1;
      else high = middle;
    }
    // Of the names that are not smaller, those that begin with this one come first.
    const path = this.paths[low];
    return (
      path !== undefined &&
      name.length >= path.rootLength &&
      Buffer.compare(path.name.subarray(0, name.length), name) === 0
    );
  }
}

/** The last page that begins with a name not above the given one; -1 where there is none. */
function pageOf(firsts: readonly Uint8Array[], name: Uint8Array): number {
  let [low, high] = [0, firsts.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const first = firsts[middle];
    if (first !== undefined && Buffer.compare(first, name) <= 0) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
