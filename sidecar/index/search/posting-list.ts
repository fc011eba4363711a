/** Posting lists as the search reads them, newest first: stored ones, and what is made of them. */
import type { Height } from "../../../chain/hex.js";
import type { LevelStore } from "../../../runtime/files/level-store.js";
import {
  countRuns,
  decodeChunk,
  decodeEntries,
  type IndexRuns,
  intersectRuns,
  type PostingChunk,
  type PostingEntry,
  subtractRuns,
  uniteRuns,
} from "./posting-codec.js";
import type { ScanBudget } from "./scan-budget.js";
import { chunkKey, headKey, type SearchTerm } from "./search-postings.js";

/** What is read of the index' store. */
export type PostingStore = Pick<LevelStore, "get" | "entries">;

/** Reads entries newest first. */
export interface PostingCursor {
  /**
   * The newest entry at or below the height; undefined when there is none. Heights may not rise
   * from call to call.
   */
  seek(height: Height): Promise<PostingEntry | undefined>;
}

/** Where in a list, newest first, to begin: after `skip` transactions at or below the height. */
export interface PostingPosition {
  readonly height: Height;
  readonly skip: number;
}

/** The transactions of one condition up to a height. */
export interface PostingList {
  /** How many there are. */
  readonly count: number;
  cursor(): PostingCursor;
}

/** A list that can begin anywhere without reading what lies before. */
export interface StoredPostingList extends PostingList {
  /** How many are at or below the height. */
  countAt(height: Height): Promise<number>;
  /** Where the transactions after the newest `offset` begin; `offset` < `count`. */
  position(offset: number): Promise<PostingPosition>;
}

/** Bytes of a plain entry: entries of many runs cost as much as several plain ones. */
const POSTING_BYTES = 4;

/** A read of a range costs as much as about this many plain entries. */
const RANGE_READ_POSTINGS = 20;

/** Blocks of which a difference leaves nothing: so many are passed before the next match is sought. */
const MAX_PASSED_BLOCKS = 64;

/** Most chunks of one read; 128 bytes each. */
const MAX_READ_CHUNKS = 64;

/** A list with at most one entry. */
export function singleList(entry: PostingEntry | undefined): PostingList {
  const entryUpTo = (height: Height) =>
    entry === undefined || entry.height > height ? undefined : entry;
  return {
    count: entry === undefined ? 0 : countRuns(entry.runs),
    cursor: () => ({ seek: (height) => Promise.resolve(entryUpTo(height)) }),
  };
}

/** The list of a term up to a height. */
export async function openPostings(
  store: PostingStore,
  term: SearchTerm,
  options: { readonly maxHeight: Height; readonly budget: ScanBudget },
): Promise<StoredPostingList> {
  const { maxHeight, budget } = options;
  const reader = new ChunkReader(store, term, budget);
  const countAt = async (height: Height) => {
    const newest = await reader.at(height);
    return newest === undefined ? 0 : newest.before + countUpTo(newest, height);
  };
  const count = await countAt(maxHeight);
  return {
    count,
    countAt,
    cursor: () => new StoredCursor(reader, budget),
    async position(offset) {
      const rank = count - offset;
      const chunk = await reader.holding(rank, maxHeight);
      let above = chunk.before + chunk.count;
      for (const { height, runs } of decodeEntries(chunk).toReversed()) {
        const below = above - countRuns(runs);
        if (rank > below) return { height, skip: above - rank };
        above = below;
      }
      throw new RangeError("a posting chunk holds fewer transactions than it says");
    },
  };
}

/** Transactions that are in all of the lists. The shortest leads, the others follow by seeking. */
export function intersection(lists: readonly PostingList[]): PostingCursor {
  const sorted = lists.toSorted((left, right) => left.count - right.count);
  const cursors = sorted.map((list) => list.cursor());
  return {
    async seek(height) {
      let at = height;
      for (;;) {
        const meeting = await meet(cursors, at);
        if (meeting === undefined || meeting.runs.length > 0) return meeting;
        if (meeting.height === 0) return undefined;
        at = meeting.height - 1;
      }
    },
  };
}

/** Transactions that are in any of the lists. */
export function union(lists: readonly PostingList[]): PostingCursor {
  const cursors = lists.map((list) => list.cursor());
  return {
    async seek(height) {
      let newest: PostingEntry | undefined;
      for (const cursor of cursors) {
        const entry = await cursor.seek(height);
        if (entry === undefined) continue;
        if (newest === undefined || entry.height > newest.height) newest = entry;
        else if (entry.height === newest.height) {
          newest = { height: entry.height, runs: uniteRuns(newest.runs, entry.runs) };
        }
      }
      return newest;
    },
  };
}

/**
 * Transactions of a list up to a height that are not in another one, all of which are in the first. Where it
 * leaves none of many blocks, the next one is found by halving: it costs O(log n), however many they are.
 */
export function difference(
  all: StoredPostingList,
  except: StoredPostingList,
  maxHeight: Height,
): StoredPostingList {
  const count = all.count - except.count;
  const countAt = async (height: Height) =>
    (await all.countAt(height)) - (await except.countAt(height));
  /** The lowest height at or below which there are so many; there are at the highest. */
  const heightOf = async (rank: number, highest: Height): Promise<Height> => {
    let [low, high] = [0, highest];
    while (low < high) {
      const middle = low + Math.floor((high - low) / 2);
      if ((await countAt(middle)) >= rank) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  return {
    count,
    countAt,
    async position(offset) {
      if (offset === 0) return { height: maxHeight, skip: 0 };
      const rank = count - offset;
      const height = await heightOf(rank, maxHeight);
      return { height, skip: (await countAt(height)) - rank };
    },
    cursor() {
      const [from, without] = [all.cursor(), except.cursor()];
      return {
        async seek(height) {
          for (let [at, passed] = [height, 0]; at >= 0; passed += 1) {
            if (passed === MAX_PASSED_BLOCKS) {
              const left = await countAt(at);
              if (left === 0) return undefined;
              at = await heightOf(left, at);
            }
            const entry = await from.seek(at);
            if (entry === undefined) return undefined;
            const left = await without.seek(entry.height);
            if (left?.height !== entry.height) return entry;
            const runs = subtractRuns(entry.runs, left.runs);
            if (runs.length > 0) return { height: entry.height, runs };
            at = entry.height - 1;
          }
          return undefined;
        },
      };
    },
  };
}

/** How many transactions up to the height are in any of the lists. The longest is not scanned. */
export async function countUnion(lists: readonly PostingList[], height: Height): Promise<number> {
  const sorted = lists.toSorted((left, right) => right.count - left.count);
  const [longest, ...others] = sorted;
  if (longest === undefined) return 0;
  const known = longest.cursor();
  let count = longest.count;
  const rest = union(others);
  for (let at = height; at >= 0; ) {
    const entry = await rest.seek(at);
    if (entry === undefined) break;
    const already = await known.seek(entry.height);
    const isShared = already?.height === entry.height;
    count += countRuns(isShared ? subtractRuns(entry.runs, already.runs) : entry.runs);
    at = entry.height - 1;
  }
  return count;
}

/**
 * The newest block at or below the height that is in every list, with the transactions that are
 * in all of them, maybe none.
 */
async function meet(
  cursors: readonly PostingCursor[],
  height: Height,
): Promise<PostingEntry | undefined> {
  let at = height;
  for (;;) {
    let shared: IndexRuns | undefined;
    let isMet = true;
    for (const cursor of cursors) {
      const entry = await cursor.seek(at);
      if (entry === undefined) return undefined;
      // Whoever is further down brings the others down to it, beginning with the shortest list.
      isMet = shared === undefined || entry.height === at;
      at = entry.height;
      if (!isMet) break;
      shared = shared === undefined ? entry.runs : intersectRuns(shared, entry.runs);
    }
    if (isMet && shared !== undefined) return { height: at, runs: shared };
  }
}

function countUpTo(chunk: PostingChunk, maxHeight: Height): number {
  if (chunk.last <= maxHeight) return chunk.count;
  let count = 0;
  for (const { height, runs } of decodeEntries(chunk)) {
    if (height <= maxHeight) count += countRuns(runs);
  }
  return count;
}

/**
 * Chunks of one term. The head is read once: what is put beside it later was in it, and everything
 * below it never changes, so a search sees one moment without a snapshot.
 */
class ChunkReader {
  private readonly head: PostingChunk | undefined;

  constructor(
    private readonly store: PostingStore,
    private readonly term: SearchTerm,
    private readonly budget: ScanBudget,
  ) {
    const bytes = store.get(headKey(term));
    this.head = bytes === undefined ? undefined : decodeChunk(bytes);
  }

  /** The chunk in which the newest entry at or below the height is. */
  async at(height: Height): Promise<PostingChunk | undefined> {
    const [chunk] = await this.from(height, 1);
    return chunk;
  }

  /** That chunk and those before it, at most `limit`, newest first. */
  async from(height: Height, limit: number): Promise<PostingChunk[]> {
    const { head, term, store } = this;
    if (head === undefined) return [];
    if (head.first <= height) return [head];
    await this.budget.spend(RANGE_READ_POSTINGS);
    const chunks: PostingChunk[] = [];
    const range = { from: chunkKey(term, height), to: chunkKey(term, 0), limit };
    for await (const [, bytes] of store.entries(range)) chunks.push(decodeChunk(bytes));
    return chunks;
  }

  /** The chunk that holds the list's transaction number `rank` (the oldest is 1). */
  async holding(rank: number, maxHeight: Height): Promise<PostingChunk> {
    let lowest = 0;
    let highest = maxHeight;
    // Pages near the tip are the usual ones: look there first.
    let probe = maxHeight;
    while (lowest <= highest) {
      const chunk = await this.at(probe);
      if (chunk === undefined || chunk.before + chunk.count < rank) lowest = probe + 1;
      else if (chunk.before >= rank) highest = chunk.first - 1;
      else return chunk;
      probe = lowest + Math.floor((highest - lowest) / 2);
    }
    throw new RangeError("a posting list holds fewer transactions than it says");
  }
}

class StoredCursor implements PostingCursor {
  /** Chunks not entered yet, newest first. */
  private ahead: PostingChunk[] = [];
  private entries: readonly PostingEntry[] = [];
  /** Height of the oldest entry at hand. */
  private first = Number.POSITIVE_INFINITY;
  /** Entries at hand from here on are too new. */
  private end = 0;
  private readChunks = 1;

  constructor(
    private readonly reader: ChunkReader,
    private readonly budget: ScanBudget,
  ) {}

  async seek(height: Height): Promise<PostingEntry | undefined> {
    if (height < this.first && !(await this.enter(height))) return undefined;
    for (;;) {
      const entry = this.entries[this.end - 1];
      if (entry === undefined || entry.height <= height) return entry;
      this.end -= 1;
    }
  }

  /** Makes the chunk at the height the one at hand. */
  private async enter(height: Height): Promise<boolean> {
    const next = this.ahead.findIndex(({ first }) => first <= height);
    if (next === -1) {
      // Reading on in order: fetch more at once. After a leap: only what is needed.
      const isInOrder = this.ahead.length === 0;
      this.readChunks = isInOrder ? Math.min(2 * this.readChunks, MAX_READ_CHUNKS) : 1;
      this.ahead = await this.reader.from(height, this.readChunks);
    } else {
      this.ahead.splice(0, next);
    }
    const chunk = this.ahead.shift();
    if (chunk === undefined) return false;
    this.entries = decodeEntries(chunk);
    this.end = this.entries.length;
    this.first = chunk.first;
    await this.budget.spend(Math.ceil(chunk.entries.length / POSTING_BYTES));
    return true;
  }
}
