/**
 * Goes through the old versions of accounts or storage in the order of their keys, a slice at a
 * time, and deletes those that no height from the base on can see: of each name only the newest
 * version at or below the base is of use. Nothing is remembered over a restart: a sweep that is
 * begun again finds less to delete.
 */
import { readHeight } from "../../../chain/encoding/height-bytes.js";
import type { Height } from "../../../chain/hex.js";
import { type Database, type KeySpace, storeKey, type StoreWrite } from "../database.js";

/** Spaces with keys that end in the height of a version. */
export type VersionSpace = Extract<KeySpace, "accountHistory" | "storageHistory">;

/** Keys read at once; some milliseconds of work. */
const SLICE_KEYS = 1_000;

const HEIGHT_BYTES = 8;
/** No key of these spaces is longer than address, slot and height. */
const END = Buffer.alloc(61, 0xff);

interface Version {
  readonly key: Buffer;
  readonly height: Height;
  readonly isEmpty: boolean;
}

/** One walk over all versions of one space. */
export class HistorySweep {
  /** Versions that stay, of those that were looked at. */
  kept = 0;
  private from: Buffer;
  /** The newest version of the name in progress that is not above the base. */
  private candidate: Version | undefined;

  constructor(
    private readonly database: Database,
    private readonly space: VersionSpace,
    /** The oldest height that is served. */
    private readonly oldest: Height,
  ) {
    this.from = storeKey(space);
  }

  /** The deletions of the next slice; undefined after the last one. */
  async next(): Promise<readonly StoreWrite[] | undefined> {
    const deletions: Version[] = [];
    let count = 0;
    const range = { from: this.from, to: storeKey(this.space, END), limit: SLICE_KEYS };
    for await (const [key, value] of this.database.entries(range)) {
      count += 1;
      const height = readHeight(key, key.length - HEIGHT_BYTES);
      deletions.push(...this.pass({ key, height, isEmpty: value.length === 0 }));
      this.from = Buffer.concat([key, Buffer.alloc(1)]);
    }
    if (count === 0 && this.candidate === undefined) return undefined;
    if (count < SLICE_KEYS) deletions.push(...this.close());
    this.kept += count - deletions.length;
    return deletions.map(({ key }) => ({ key, value: undefined }));
  }

  /** What a further version makes needless. */
  private pass(version: Version): Version[] {
    const { candidate } = this;
    const isSame = candidate !== undefined && isSameName(candidate.key, version.key);
    if (version.height > this.oldest) return isSame ? [] : this.close();
    const older = candidate !== undefined && isSame ? [candidate] : this.close();
    this.candidate = version;
    return older;
  }

  /** The name in progress is over: an account or value that was gone needs no version at all. */
  private close(): Version[] {
    const { candidate } = this;
    this.candidate = undefined;
    const isNeedless = candidate?.isEmpty === true && candidate.height < this.oldest;
    return isNeedless ? [candidate] : [];
  }
}

function isSameName(left: Buffer, right: Buffer): boolean {
  const length = left.length - HEIGHT_BYTES;
  return right.length === left.length && left.compare(right, 0, length, 0, length) === 0;
}
