/**
 * What the log holds of the height in progress, however damaged the file is. Damage before the
 * newest end mark is of no consequence; behind it records on both sides are read, and the loss is
 * told, because a validator may have locked on a block by what is lost.
 */
import type { Height } from "../../../chain/hex.js";
import { RangeChecksums } from "./range-checksums.js";
import {
  FRAME_HEAD_BYTES,
  frameEnd,
  frameOf,
  heightOf,
  isCutShort,
  looksLikeFrame,
  MAX_RECORD_BYTES,
  recordAt,
  type WalRecord,
} from "./records.js";

/** What an opened log holds of the height that was in progress. */
export interface WalTail {
  /** Height of the last end mark; undefined when there is none. */
  readonly endHeight: Height | undefined;
  /** Records after that mark. */
  readonly records: readonly WalRecord[];
  /** Records after that mark were lost, now or at an earlier start. */
  readonly hasGap: boolean;
  /** Bytes of a torn tail that were cut off: what a crash leaves of a record that was not forced. */
  readonly cutBytes: number;
  /** Bytes that were damaged, anywhere in the file. */
  readonly damagedBytes: number;
}

/**
 * Reads a whole log.
 * @param storedHeight newest height in the store: behind damage nothing is believed that goes beyond
 * @returns the tail, and the content of a file that says the same without damage or cut
 */
export function readTail(
  bytes: Buffer,
  storedHeight: Height,
): { readonly tail: WalTail; readonly content: Buffer } {
  const reading = new TailReading(storedHeight);
  let at = 0;
  let cutBytes = 0;
  let search: RecordSearch | undefined;
  while (at < bytes.length) {
    // Not searched: what is there of a torn record is what others proposed, and may look like records.
    if (isCutShort(bytes, at)) {
      cutBytes = bytes.length - at;
      break;
    }
    const next = search === undefined ? recordAt(bytes, at) : search.recordAt(at);
    if (next === undefined) search ??= new RecordSearch(bytes, at);
    const resumeAt = next === undefined ? search?.resumeAfter(at) : next.end;
    if (next !== undefined && reading.take(next.record)) {
      at = next.end;
      continue;
    }
    if (resumeAt === undefined && isTorn(bytes, at)) {
      cutBytes = bytes.length - at;
      break;
    }
    const end = resumeAt ?? bytes.length;
    reading.lose(end - at);
    at = end;
  }
  return {
    tail: { ...reading.result(), cutBytes },
    // As long as all records, and mostly not wanted.
    get content() {
      return reading.content();
    },
  };
}

/** Collects what belongs to the height in progress. */
class TailReading {
  private endHeight: Height | undefined;
  private records: WalRecord[] = [];
  /** The highest height that a record was about. */
  private inProgress: Height = 1;
  private hasGap = false;
  private damagedBytes = 0;

  constructor(private readonly storedHeight: Height) {}

  /** False for a record that cannot follow: it is none of ours. */
  take(record: WalRecord): boolean {
    // What a search found may be of a block's bytes.
    if (this.damagedBytes > 0 && this.isBeyondStore(record)) return false;
    if (record.type === "end-height") {
      if (this.endHeight !== undefined && record.height <= this.endHeight) return false;
      this.begin(record.height, false);
      return true;
    }
    // A record of a later height than the one after the mark: the mark between was lost.
    const height = heightOf(record);
    if (this.hasGap && height > this.inProgress) this.begin(height - 1, true);
    this.inProgress = Math.max(this.inProgress, height);
    if (record.type === "gap") this.hasGap = true;
    else this.records.push(record);
    return true;
  }

  lose(sizeBytes: number): void {
    this.damagedBytes += sizeBytes;
    this.hasGap = true;
  }

  result(): Omit<WalTail, "cutBytes"> {
    const { endHeight, records, hasGap, damagedBytes } = this;
    return { endHeight, records, hasGap, damagedBytes };
  }

  content(): Buffer {
    const { endHeight, records, hasGap } = this;
    const marks: WalRecord[] = [];
    if (endHeight !== undefined) marks.push({ type: "end-height", height: endHeight });
    if (hasGap) marks.push({ type: "gap", height: (endHeight ?? 0) + 1 });
    return Buffer.concat([...marks, ...records].map(frameOf));
  }

  /** Heights end when they are stored, and only the one after the newest is in progress. */
  private isBeyondStore(record: WalRecord): boolean {
    const inProgress = record.type === "end-height" ? record.height + 1 : heightOf(record);
    return inProgress > this.storedHeight + 1;
  }

  private begin(endHeight: Height, hasGap: boolean): void {
    this.endHeight = endHeight;
    this.inProgress = endHeight + 1;
    this.records = [];
    this.hasGap = hasGap;
  }
}

/**
 * Looks for records from the first damage on. Each byte is summed up once, however many places
 * look like the beginning of a record.
 */
class RecordSearch {
  private readonly sums: RangeChecksums;

  constructor(
    private readonly bytes: Buffer,
    from: number,
  ) {
    this.sums = new RangeChecksums(bytes, from, MAX_RECORD_BYTES + FRAME_HEAD_BYTES);
  }

  /** As the function of that name. Places must ascend, but for what `resumeAfter` looks at. */
  recordAt(at: number): ReturnType<typeof recordAt> {
    return recordAt(this.bytes, at, (from, to) => this.sums.of(from, to));
  }

  /**
   * Where the next record begins after damage. The damaged frame's own length is believed first:
   * its data is whatever others proposed, and may look like records.
   */
  resumeAfter(at: number): number | undefined {
    const { bytes } = this;
    const end = frameEnd(bytes, at);
    if (end !== undefined && this.recordAt(end) !== undefined) return end;
    for (let next = at + 1; next + FRAME_HEAD_BYTES <= bytes.length; next++) {
      if (looksLikeFrame(bytes, next) && this.recordAt(next) !== undefined) return next;
    }
    return undefined;
  }
}

/** Whether the rest is what a crash leaves: a frame that is not all there, or nothing but zeros. */
function isTorn(bytes: Buffer, at: number): boolean {
  const isPart =
    at + FRAME_HEAD_BYTES > bytes.length ||
    (frameEnd(bytes, at) === undefined && bytes.readUInt32BE(at + 4) <= MAX_RECORD_BYTES);
  return isPart || bytes.subarray(at).every((byte) => byte === 0);
}
