/**
 * Spans: one diff for many blocks that follow each other, so that a proof of long ago need not look
 * through the diff of each (ADR 95). A span of level 1 tells what 256 blocks changed, one of level 2
 * what 256 spans of level 1 did; each begins at a multiple of its length. Where a span is not there
 * the smaller ones tell the same, and the blocks' own diffs in the end.
 */
import { heightBytes, readHeight } from "../../../chain/encoding/height-bytes.js";
import type { Height } from "../../../chain/hex.js";
import { type Database, storeKey, StoreError, type StoreSnapshot } from "../database.js";
import { diffPageKey } from "./trie-diff.js";

/**
 * Spans of a level, or blocks, that one of the next level tells as one: a proof looks through twice as
 * many of each level at most, and whoever puts them together holds a page of each in memory.
 */
export const SPAN_FAN_OUT = 256;

/** Above it a span is longer than any chain. */
export const MAX_SPAN_LEVEL = 6;

/** Where a diff lies: the state after height `after` is what it leads back to. */
export interface DiffPlace {
  /** 0: of a single block. */
  readonly level: number;
  readonly after: Height;
}

/** Blocks that a diff of a level tells of. */
export function spanBlocks(level: number, fanOut: number): number {
  return fanOut ** level;
}

/** Key of the names that the pages of a diff begin with; written with its last page. */
export function diffKey({ level, after }: DiffPlace): Buffer {
  if (level === 0) return storeKey("trieDiff", heightBytes(after + 1));
  return storeKey("trieSpan", Uint8Array.of(level), heightBytes(after));
}

/** Key of a page of a diff. */
export function pageKey({ level, after }: DiffPlace, page: number): Buffer {
  if (level === 0) return diffPageKey(after + 1, page);
  const number = Buffer.allocUnsafe(4);
  number.writeUInt32BE(page);
  return storeKey("trieSpanPage", Uint8Array.of(level), heightBytes(after), number);
}

/** A diff that is stored as a whole, of a block or of a span. */
export class StoredDiff {
  /** @param names RLP of the names that its pages begin with */
  constructor(
    private readonly database: Pick<Database, "get">,
    readonly place: DiffPlace,
    readonly names: Buffer,
    private readonly snapshot?: StoreSnapshot,
  ) {}

  /** @throws STORE_CORRUPT where it is missing */
  page(page: number): Buffer {
    const bytes = this.database.get(pageKey(this.place, page), this.snapshot);
    if (bytes !== undefined) return bytes;
    throw new StoreError("STORE_CORRUPT", "a page of a reverse diff is missing", {
      details: { ...this.place, page },
    });
  }
}

/** A diff; undefined where it is not there as a whole. */
export function openDiff(
  database: Pick<Database, "get">,
  place: DiffPlace,
  snapshot?: StoreSnapshot,
): StoredDiff | undefined {
  const names = database.get(diffKey(place), snapshot);
  return names === undefined ? undefined : new StoredDiff(database, place, names, snapshot);
}

/**
 * The diffs that lead from the newest state back to the one after a height, oldest first: the longest
 * spans that are there, and the blocks' own between them.
 */
export async function* diffsSince(
  database: Database,
  height: Height,
  { snapshot, fanOut }: { readonly snapshot: StoreSnapshot; readonly fanOut: number },
): AsyncGenerator<StoredDiff, void> {
  // Also blocks above the head that became durable in the meantime.
  const newest = await newestDiff(database, snapshot);
  let after = height;
  while (after < newest) {
    const span = longestSpan(database, after, { newest, fanOut, snapshot });
    if (span !== undefined) {
      yield span;
      after += spanBlocks(span.place.level, fanOut);
      continue;
    }
    const end = (Math.floor(after / fanOut) + 1) * fanOut;
    const from = diffKey({ level: 0, after });
    const to = diffKey({ level: 0, after: end - 1 });
    for await (const [key, names] of database.entries({ from, to, snapshot })) {
      const place = { level: 0, after: readHeight(key, 1) - 1 };
      yield new StoredDiff(database, place, names, snapshot);
    }
    after = end;
  }
}

async function newestDiff(database: Database, snapshot: StoreSnapshot): Promise<Height> {
  const from = storeKey("trieDiff", heightBytes(0));
  const to = storeKey("trieDiff", heightBytes(Number.MAX_SAFE_INTEGER));
  const [last] = await database.few({ from, to, reverse: true, limit: 1, snapshot });
  return last === undefined ? 0 : readHeight(last[0], 1);
}

function longestSpan(
  database: Database,
  after: Height,
  options: { readonly newest: Height; readonly fanOut: number; readonly snapshot: StoreSnapshot },
): StoredDiff | undefined {
  const { newest, fanOut, snapshot } = options;
  for (let level = MAX_SPAN_LEVEL; level > 0; level--) {
    const blocks = spanBlocks(level, fanOut);
    if (after % blocks !== 0 || after + blocks > newest) continue;
    const span = openDiff(database, { level, after }, snapshot);
    if (span !== undefined) return span;
  }
  return undefined;
}
