/** Tries as they were after a block of the past: nodes as they are now, with the diffs since then undone. */
import { readRlp, type RlpReader } from "../../../chain/encoding/rlp-reader.js";
import type { Height } from "../../../chain/hex.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import type { Database } from "../database.js";
import { pageOf, readFirsts } from "./diff-pages.js";
import { damagedDiff, PastNode } from "./past-node.js";
import type { StoreBase } from "../store-base.js";
import { diffsSince, SPAN_FAN_OUT } from "./trie-spans.js";
import type { TrieNodeReader } from "./trie-port.js";
import { compareNames, nameIn, nodeKey } from "./trie-store.js";

/** A key of a trie whose path is wanted. */
export interface TrieKey {
  readonly owner: string;
  /** One per byte. */
  readonly nibbles: Uint8Array;
}

/** Which tries are wanted, and who wants them. */
export interface PastHeight {
  readonly height: Height;
  readonly base: StoreBase;
  readonly signal: AbortSignal;
  /** What the spans of this store were made with. */
  readonly fanOut?: number;
}

/**
 * Hands the nodes on the way to some keys, as they were after a block, to `use`: what the first
 * reverse diff since then that has a node says it was before, else what it is now. Each diff, of a
 * block or of a span of them, is looked through once for all keys, page by page, and others run in
 * between.
 * @throws HISTORY_PRUNED when the reverse diffs of the blocks since then are not all there; the
 *   signal's reason
 */
export async function withTrieAt<Result>(
  database: Database,
  keys: readonly TrieKey[],
  at: PastHeight,
  use: (reader: TrieNodeReader) => Promise<Result>,
): Promise<Result> {
  const { fanOut = SPAN_FAN_OUT } = at;
  at.base.assertProof(at.height);
  const snapshot = database.snapshot();
  try {
    const past = new PastNodes(keys);
    for await (const diff of diffsSince(database, at.height, { snapshot, fanOut })) {
      for (const page of await past.pagesOf(readFirsts(diff.names), at.signal)) {
        await breathe(at.signal);
        past.learn(diff.page(page));
      }
    }
    return await use({
      get(owner, path) {
        const key = nodeKey(owner, path);
        return past.get(nameIn(key), () => database.get(key, snapshot));
      },
    });
  } finally {
    await snapshot.close();
  }
}

/** Paths whose pages are looked up without a pause. */
const PATHS_AT_ONCE = 64;

/** What nodes on the way to some keys were, as far as the diffs that were looked at tell. */
class PastNodes {
  private readonly nodes = new Map<string, PastNode>();
  /** Sorted by name. */
  private readonly paths: NamedPath[];

  constructor(keys: readonly TrieKey[]) {
    this.paths = keys
      .map(({ owner, nibbles }) => {
        const name = nameIn(nodeKey(owner, nibbles));
        return { name, rootLength: name.length - nibbles.length, known: 0 };
      })
      .toSorted((left, right) => compareNames(left.name, right.name));
  }

  /**
   * The node before the first block that changed it; undefined where there was none.
   * @param present what it is now; asked for where the diffs do not tell the whole of it
   */
  get(name: Buffer, present: () => Uint8Array | undefined): Uint8Array | undefined {
    const node = this.nodes.get(name.toString("latin1"));
    return node === undefined ? present() : node.get(present);
  }

  /** Pages of a diff that may have nodes that are not known yet, by the names they begin with. */
  async pagesOf(firsts: readonly Uint8Array[], signal: AbortSignal): Promise<Set<number>> {
    const pages = new Set<number>();
    for (const [index, path] of this.paths.entries()) {
      if (pages.size === firsts.length) break;
      if (index % PATHS_AT_ONCE === 0) await breathe(signal);
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

  /** Takes over what a page of the next diff says. Throws STORE_CORRUPT. */
  learn(page: Uint8Array): void {
    try {
      readRlp(page, (reader) => reader.items((node) => node.list(() => this.learnNode(node))));
    } catch (cause) {
      throw damagedDiff(cause);
    }
  }

  private learnNode(reader: RlpReader): void {
    const name = reader.bytes();
    const place = this.firstBelow(name);
    if (place === undefined) {
      while (reader.hasMore) reader.skip();
      return;
    }
    const text = Buffer.from(name).toString("latin1");
    const known = this.nodes.get(text) ?? new PastNode();
    this.nodes.set(text, known);
    const wasWhole = known.isWhole;
    known.learn(reader);
    if (known.isWhole && !wasWhole) this.advance(place, name);
  }

  /** Looks how far the paths below a node are known now; they follow each other. */
  private advance(place: number, name: Uint8Array): void {
    for (let index = place; ; index++) {
      const path = this.paths[index];
      if (path === undefined || !isBelow(path, name)) return;
      while (
        path.rootLength + path.known < path.name.length &&
        this.isWhole(path.name.subarray(0, path.rootLength + path.known))
      ) {
        path.known += 1;
      }
    }
  }

  private isWhole(name: Buffer): boolean {
    return this.nodes.get(name.toString("latin1"))?.isWhole === true;
  }

  /** Place of the first path that a name begins, its owner included; undefined where it begins none. */
  private firstBelow(name: Uint8Array): number | undefined {
    let [low, high] = [0, this.paths.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const path = this.paths[middle];
      if (path !== undefined && Buffer.compare(path.name, name) < 0) low = middle + 1;
      else high = middle;
    }
    // Of the names that are not smaller, those that begin with this one come first.
    const path = this.paths[low];
    return path !== undefined && isBelow(path, name) ? low : undefined;
  }
}

/** A name that a path ends in. */
interface NamedPath {
  readonly name: Buffer;
  /** Bytes before the first nibble. */
  readonly rootLength: number;
  /** Leading depths whose nodes are known as wholes. */
  known: number;
}

function isBelow(path: NamedPath, name: Uint8Array): boolean {
  return (
    name.length >= path.rootLength && Buffer.compare(path.name.subarray(0, name.length), name) === 0
  );
}
