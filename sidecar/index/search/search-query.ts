/**
 * Searches: conditions on transactions, each of which holds when any one operation (or the hash)
 * satisfies it, combined by `and` or `or`, newest first, with the exact total.
 */
import { LRUCache } from "lru-cache";
import type { Height } from "../../../chain/hex.js";
import type { TransactionPlace } from "../index-reader.js";
import {
  countUnion,
  difference,
  intersection,
  openPostings,
  type PostingCursor,
  type PostingList,
  type PostingPosition,
  type PostingStore,
  singleList,
  type StoredPostingList,
  union,
} from "./posting-list.js";
import { countRuns, type IndexRuns } from "./posting-codec.js";
import { ScanBudget } from "./scan-budget.js";
import { ANY_TRANSACTION, headKey, type SearchTerm } from "./search-postings.js";

interface TermCondition {
  readonly kind: "term";
  readonly term: SearchTerm;
  /** A property that it must not have, of transactions that all have the first one. */
  readonly except?: SearchTerm;
}

/** What a transaction must have: a property, a place (its hash's), or what none has. */
export type SearchCondition =
  | TermCondition
  | { readonly kind: "place"; readonly place: TransactionPlace }
  | { readonly kind: "never" };

/** A search. Without conditions it finds every transaction. */
export interface SearchQuery {
  readonly operator: "and" | "or";
  readonly conditions: readonly SearchCondition[];
  /** Newest block that counts; at most the index' tip, so that the answer can never change. */
  readonly maxHeight: Height;
  /** Found transactions to pass over, newest first. */
  readonly offset: number;
  /** Most places to return. */
  readonly limit: number;
}

/** What was found. */
export interface SearchResult {
  /** Exact number of transactions that match. */
  readonly totalCount: number;
  /** Newest block first, within a block the last transaction first. */
  readonly places: readonly TransactionPlace[];
}

/** Runs searches; keeps what makes the next page of a search cheap. */
export type TransactionSearch = (
  query: SearchQuery,
  options: { readonly signal: AbortSignal; readonly maxScannedPostings?: number },
) => Promise<SearchResult>;

/** Searches whose totals and marks are kept; at most about 100 KB each. */
const MAX_KNOWN_SEARCHES = 64;

/** Matches between two marks: what a page reads at most before it begins. */
const MARK_MATCHES = 1_000;

/** The condition of a search that has none. */
const ANY: TermCondition = { kind: "term", term: ANY_TRANSACTION };

/** What is known of a combined search up to a height; final, because blocks are. */
interface KnownSearch {
  readonly totalCount: number;
  /** `offset` matches are above `height`; rising offsets. */
  readonly marks: { readonly offset: number; readonly height: Height }[];
}

/**
 * Makes searches over a store. One condition costs O(log n + limit) at any offset, with something excepted
 * at most O(limit log n); `and` scans its shortest list and `or` all but its longest, once per search and
 * `maxHeight`.
 * @throws SEARCH_TOO_BROAD when that is more than `maxScannedPostings`; the signal's reason
 */
export function createTransactionSearch(store: PostingStore): TransactionSearch {
  const known = new LRUCache<string, KnownSearch>({ max: MAX_KNOWN_SEARCHES });

  return async (query, { signal, maxScannedPostings }) => {
    signal.throwIfAborted();
    const budget = new ScanBudget(signal, maxScannedPostings);
    const { maxHeight, offset, limit } = query;
    const conditions = query.conditions.map((one) => withoutIdleExcept(store, one));
    const [only, ...more] = distinct(conditions);
    if (only === undefined || (more.length === 0 && only.kind === "term")) {
      const list = await openTerm(store, only ?? ANY, { maxHeight, budget });
      const { count } = list;
      if (offset >= count || limit === 0) return { totalCount: count, places: [] };
      const begin = await list.position(offset);
      const left = Math.min(limit, count - offset);
      return { totalCount: count, places: await readPage(list.cursor(), begin, left) };
    }
    const lists: PostingList[] = [];
    for (const condition of [only, ...more]) {
      lists.push(await openCondition(store, condition, { maxHeight, budget }));
    }
    if (query.operator === "and" && lists.some(({ count }) => count === 0)) {
      return { totalCount: 0, places: [] };
    }
    const combine = () => (query.operator === "and" ? intersection(lists) : union(lists));
    const key = keyOf(query, [only, ...more]);
    let search = known.get(key);
    if (search === undefined) {
      // What one list holds is known without reading it.
      search =
        query.operator === "and" && lists.length > 1
          ? await markAll(combine(), maxHeight)
          : { totalCount: await countUnion(lists, maxHeight), marks: [] };
      known.set(key, search);
    }
    const { totalCount, marks } = search;
    if (offset >= totalCount || limit === 0) return { totalCount, places: [] };
    const mark = marks.findLast((candidate) => candidate.offset <= offset);
    const begin = { height: mark?.height ?? maxHeight, skip: offset - (mark?.offset ?? 0) };
    // After the last match there may be much to read that does not match.
    const left = Math.min(limit, totalCount - offset);
    return { totalCount, places: await readPage(combine(), begin, left, { marks, offset }) };
  };
}

/** Most accounts never have what is excepted, and then it need not be read. */
function withoutIdleExcept(store: PostingStore, condition: SearchCondition): SearchCondition {
  if (condition.kind !== "term" || condition.except === undefined) return condition;
  const { kind, term, except } = condition;
  return store.get(headKey(except)) === undefined ? { kind, term } : condition;
}

async function openTerm(
  store: PostingStore,
  { term, except }: TermCondition,
  options: { readonly maxHeight: Height; readonly budget: ScanBudget },
): Promise<StoredPostingList> {
  const all = await openPostings(store, term, options);
  if (except === undefined) return all;
  return difference(all, await openPostings(store, except, options), options.maxHeight);
}

async function openCondition(
  store: PostingStore,
  condition: SearchCondition,
  options: { readonly maxHeight: Height; readonly budget: ScanBudget },
): Promise<PostingList> {
  if (condition.kind === "term") return openTerm(store, condition, options);
  if (condition.kind === "never") return singleList(undefined);
  const { height, position } = condition.place;
  const isAbove = height > options.maxHeight;
  return singleList(isAbove ? undefined : { height, runs: [position, position + 1] });
}

/** Conditions without repetitions, in an order of their own: `success` may repeat `status`. */
function distinct(conditions: readonly SearchCondition[]): SearchCondition[] {
  const byText = new Map(conditions.map((condition) => [textOf(condition), condition]));
  return [...byText].toSorted(([left], [right]) => (left < right ? -1 : 1)).map(([, one]) => one);
}

function keyOf(query: SearchQuery, conditions: readonly SearchCondition[]): string {
  return [query.operator, query.maxHeight, ...conditions.map(textOf)].join(" ");
}

function textOf(condition: SearchCondition): string {
  if (condition.kind === "term") {
    const except = condition.except === undefined ? "" : `-${condition.except.toString("hex")}`;
    return `${condition.term.toString("hex")}${except}`;
  }
  if (condition.kind === "never") return "never";
  return `at ${condition.place.height}.${condition.place.position}`;
}

/** Counts all matches, and marks where some begin. */
async function markAll(cursor: PostingCursor, maxHeight: Height): Promise<KnownSearch> {
  const marks: KnownSearch["marks"] = [];
  let totalCount = 0;
  for (let height = maxHeight; height >= 0; ) {
    const entry = await cursor.seek(height);
    if (entry === undefined) break;
    addMark(marks, { offset: totalCount, height: entry.height });
    totalCount += countRuns(entry.runs);
    height = entry.height - 1;
  }
  return { totalCount, marks };
}

function addMark(marks: KnownSearch["marks"], mark: KnownSearch["marks"][number]): void {
  const last = marks.at(-1)?.offset ?? 0;
  if (mark.offset - last >= MARK_MATCHES) marks.push(mark);
}

/** Places from a position on; marks are added while passing, when they are given. */
async function readPage(
  cursor: PostingCursor,
  begin: PostingPosition,
  limit: number,
  marking?: { readonly marks: KnownSearch["marks"]; readonly offset: number },
): Promise<TransactionPlace[]> {
  const places: TransactionPlace[] = [];
  let { skip } = begin;
  for (let height = begin.height; height >= 0 && places.length < limit; ) {
    const entry = await cursor.seek(height);
    if (entry === undefined) break;
    if (marking !== undefined) {
      const offset = marking.offset + places.length - skip;
      addMark(marking.marks, { offset, height: entry.height });
    }
    const count = countRuns(entry.runs);
    if (skip >= count) skip -= count;
    else {
      takeNewest(entry, { skip, limit }, places);
      skip = 0;
    }
    height = entry.height - 1;
  }
  return places;
}

/** Adds an entry's places, the last transaction first, after the first `skip` of them. */
function takeNewest(
  { height, runs }: { readonly height: Height; readonly runs: IndexRuns },
  { skip, limit }: { readonly skip: number; readonly limit: number },
  places: TransactionPlace[],
): void {
  let left = skip;
  for (let at = runs.length - 2; at >= 0; at -= 2) {
    const [start = 0, end = 0] = [runs[at], runs[at + 1]];
    const passed = Math.min(left, end - start);
    left -= passed;
    for (let position = end - 1 - passed; position >= start; position -= 1) {
      if (places.length >= limit) return;
      places.push({ height, position });
    }
  }
}
