/**
 * Pure: postings as bytes. A posting list holds, per block, which transactions have a property,
 * cut into chunks that also say how many transactions came before them, so that counts need no
 * scan. Heights rise within a chunk.
 *
 * Chunk: varints `before`, `count`, `first`, `last`, then per block: height since the previous
 * one (0 for the first), number of runs, and per run the gap since the end of the previous run and
 * its length - 1. A property that all transactions of a block have costs four bytes.
 */
import assert from "node:assert/strict";
import type { Height } from "../../../chain/hex.js";

/**
 * Transaction indexes of one block as runs: start (included), end (excluded), start, end ...
 * rising; runs never touch.
 */
export type IndexRuns = readonly number[];

/** Transactions of one block that have the property; never empty. */
export interface PostingEntry {
  readonly height: Height;
  readonly runs: IndexRuns;
}

/** A chunk with its entries still encoded. */
export interface PostingChunk {
  /** Transactions of the list in all blocks below `first`. */
  readonly before: number;
  /** Transactions in this chunk. */
  readonly count: number;
  /** Height of the oldest entry. */
  readonly first: Height;
  /** Height of the newest entry. */
  readonly last: Height;
  /** The entries' bytes. */
  readonly entries: Buffer;
}

/** Adds an index above all others. */
export function pushIndex(runs: number[], index: number): void {
  if (runs.at(-1) === index) runs[runs.length - 1] = index + 1;
  else runs.push(index, index + 1);
}

/** How many indexes the runs hold. */
export function countRuns(runs: IndexRuns): number {
  let count = 0;
  for (let at = 0; at < runs.length; at += 2) count += (runs[at + 1] ?? 0) - (runs[at] ?? 0);
  return count;
}

/** Indexes in both. */
export function intersectRuns(left: IndexRuns, right: IndexRuns): IndexRuns {
  return sweep(left, right, (inLeft, inRight) => inLeft && inRight);
}

/** Indexes in either. */
export function uniteRuns(left: IndexRuns, right: IndexRuns): IndexRuns {
  return sweep(left, right, (inLeft, inRight) => inLeft || inRight);
}

/** Indexes of the left that are not in the right. */
export function subtractRuns(left: IndexRuns, right: IndexRuns): IndexRuns {
  return sweep(left, right, (inLeft, inRight) => inLeft && !inRight);
}

/** A chunk of one entry. */
export function startChunk(before: number, { height, runs }: PostingEntry): PostingChunk {
  const entries = encodeEntry(0, runs);
  return { before, count: countRuns(runs), first: height, last: height, entries };
}

/** The chunk with an entry above all others. */
export function extendChunk(chunk: PostingChunk, { height, runs }: PostingEntry): PostingChunk {
  assert(height > chunk.last, "postings are added in the order of blocks");
  const entry = encodeEntry(height - chunk.last, runs);
  return {
    before: chunk.before,
    count: chunk.count + countRuns(runs),
    first: chunk.first,
    last: height,
    entries: Buffer.concat([chunk.entries, entry]),
  };
}

/** Bytes of a chunk. */
export function encodeChunk({ before, count, first, last, entries }: PostingChunk): Buffer {
  const bytes = Buffer.allocUnsafe(4 * MAX_VARINT_BYTES + entries.length);
  let end = 0;
  for (const value of [before, count, first, last]) end = writeVarint(bytes, end, value);
  end += entries.copy(bytes, end);
  return bytes.subarray(0, end);
}

/** Chunk of bytes that `encodeChunk` made. */
export function decodeChunk(bytes: Buffer): PostingChunk {
  const reader = new VarintReader(bytes);
  const [before, count, first, last] = [reader.next(), reader.next(), reader.next(), reader.next()];
  return { before, count, first, last, entries: bytes.subarray(reader.offset) };
}

/** Entries of a chunk, heights rising. */
export function decodeEntries({ first, entries }: PostingChunk): PostingEntry[] {
  const reader = new VarintReader(entries);
  const decoded: PostingEntry[] = [];
  let height = first;
  while (reader.offset < entries.length) {
    height += reader.next();
    const runs: number[] = [];
    let end = 0;
    for (let left = reader.next(); left > 0; left -= 1) {
      const start = end + reader.next();
      end = start + reader.next() + 1;
      runs.push(start, end);
    }
    decoded.push({ height, runs });
  }
  return decoded;
}

function encodeEntry(heightStep: number, runs: IndexRuns): Buffer {
  assert(runs.length > 0, "a block without a matching transaction has no entry");
  const bytes = Buffer.allocUnsafe((2 + runs.length) * MAX_VARINT_BYTES);
  let end = writeVarint(bytes, 0, heightStep);
  end = writeVarint(bytes, end, runs.length / 2);
  let previousEnd = 0;
  for (let at = 0; at < runs.length; at += 2) {
    const [runStart = 0, runEnd = 0] = [runs[at], runs[at + 1]];
    end = writeVarint(bytes, end, runStart - previousEnd);
    end = writeVarint(bytes, end, runEnd - runStart - 1);
    previousEnd = runEnd;
  }
  return bytes.subarray(0, end);
}

/**
 * Walks the borders of both sides in order: after an odd number of its borders a side is inside a
 * run. `keep` must be false outside of both.
 */
function sweep(
  left: IndexRuns,
  right: IndexRuns,
  keep: (inLeft: boolean, inRight: boolean) => boolean,
): IndexRuns {
  const result: number[] = [];
  let passedLeft = 0;
  let passedRight = 0;
  while (passedLeft < left.length || passedRight < right.length) {
    const nextLeft = left[passedLeft] ?? Number.POSITIVE_INFINITY;
    const nextRight = right[passedRight] ?? Number.POSITIVE_INFINITY;
    const border = Math.min(nextLeft, nextRight);
    if (nextLeft === border) passedLeft += 1;
    if (nextRight === border) passedRight += 1;
    const isKept = keep(passedLeft % 2 === 1, passedRight % 2 === 1);
    if (isKept !== (result.length % 2 === 1)) result.push(border);
  }
  return result;
}

/** LEB128 of a number up to 2^53 - 1. */
const MAX_VARINT_BYTES = 8;

/** Returns the offset after it. No bit operations: they would stop at 32 bits. */
function writeVarint(bytes: Buffer, offset: number, value: number): number {
  let rest = value;
  let end = offset;
  while (rest >= 0x80) {
    bytes[end] = (rest % 0x80) + 0x80;
    end += 1;
    rest = Math.floor(rest / 0x80);
  }
  bytes[end] = rest;
  return end + 1;
}

class VarintReader {
  offset = 0;

  constructor(private readonly bytes: Buffer) {}

  next(): number {
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = this.bytes[this.offset];
      assert(byte !== undefined, "a posting chunk ends within a number");
      this.offset += 1;
      if (byte < 0x80) return value + byte * factor;
      value += (byte - 0x80) * factor;
      factor *= 0x80;
    }
  }
}
