/**
 * The one owner of level: an ordered store of bytes on disk, behind the few operations in use.
 * Every value is written with a checksum and held against it when it is read: level has sums of
 * its own over whole blocks, but its Node binding cannot turn them on for reads, and compaction
 * would carry a flipped bit on under a new one.
 */
import { readdir } from "node:fs/promises";
import { Level } from "level";
import { AppError, type ErrorDetails, errorMessage } from "../../chain/errors.js";
import { openValue, sealValue } from "./sealed-value.js";

/** Codes of faults of a level store. */
export type LevelStoreErrorCode =
  | "LOCKED"
  | "UNUSABLE"
  | "CORRUPT"
  | "READ_FAILED"
  | "WRITE_FAILED";

/** A fault of a level store; `details` hold `folder`, `reason` and, of a damaged record, its `key`. */
export class LevelStoreError extends AppError<LevelStoreErrorCode> {}

/** One write; a missing value deletes the key. */
export interface LevelWrite {
  readonly key: Buffer;
  readonly value: Uint8Array | undefined;
}

/** How something is written. */
export interface LevelWriteOptions {
  readonly durable: boolean;
}

/**
 * An atomic write that is put together: level takes each part over at once, nothing of it is kept here, and
 * other writes may overtake it.
 */
export interface LevelBatch {
  readonly add: (write: LevelWrite) => void;
  /**
   * With `durable` it is on disk (fsync) when the promise resolves. A batch that is not written leaves no
   * trace.
   * @throws WRITE_FAILED (disk full, read-only)
   */
  write(options: LevelWriteOptions): Promise<void>;
}

/** A consistent view of the store at one moment; must be closed. */
export type LevelSnapshot = ReturnType<Level<Buffer, Buffer>["snapshot"]>;

/** What is read of an iterator of level. */
interface LevelIterator<Item> {
  nextv(count: number): Promise<Item[]>;
  seek(key: Buffer): void;
  close(): Promise<void>;
}

/** Makes an iterator of level, and says where what it gives lies. */
interface PartsOf<Item> {
  readonly open: (options: RangeOptions) => LevelIterator<Item>;
  readonly keyOf: (item: Item) => Buffer;
}

/** Range of keys, both ends included. */
export interface LevelRange {
  readonly from: Buffer;
  readonly to: Buffer;
  readonly reverse?: boolean;
  readonly limit?: number;
  readonly snapshot?: LevelSnapshot;
}

/**
 * An open store; whatever reads or writes throws CORRUPT where it is damaged, and whatever reads READ_FAILED
 * where the system does not let it for now (too many open files).
 */
export interface LevelStore {
  get(key: Buffer, snapshot?: LevelSnapshot): Buffer | undefined;
  /**
   * One atomic write. With `durable` it is on disk (fsync) when the promise resolves. Behind one that
   * failed none succeeds any more until the store is opened anew.
   * @throws WRITE_FAILED (disk full, read-only)
   */
  write(writes: readonly LevelWrite[], options: LevelWriteOptions): Promise<void>;
  /** The same in parts, for writes that are many and are made one by one. */
  batch(): LevelBatch;
  /** One after the other; where one cannot be read the walk ends before those behind it are given. */
  entries(range: LevelRange): AsyncIterable<[Buffer, Buffer]>;
  /** All entries of a range that has few, read together: half the work of a walk through them. */
  few(range: LevelRange): Promise<[Buffer, Buffer][]>;
  /** Keys alone, where values are large and not needed; nothing holds them against a checksum. */
  keys(range: LevelRange): AsyncIterable<Buffer>;
  snapshot(): LevelSnapshot;
  /** About how many bytes the disk holds between two keys, deleted ones included. */
  diskBytes(from: Buffer, to: Buffer): Promise<number>;
  /**
   * Gives the space of deleted keys between two keys back to the disk, in level's own thread;
   * without it that may take until as much again has been written. It cannot be interrupted.
   */
  compact(from: Buffer, to: Buffer): Promise<void>;
  /** The error for records that contradict each other although each is what was written. */
  damage(reason: string): Error;
  close(): Promise<void>;
}

/** How a store is opened. */
export interface LevelStoreOptions {
  /** Memory that level may use for its block cache. */
  readonly cacheBytes: number;
  /** Bigger memtables mean fewer compactions under a load of many small keys. */
  readonly writeBufferBytes: number;
  /**
   * The one record without a checksum: it tells the store's format, and programs of every format
   * must be able to read it.
   */
  readonly formatKey?: Buffer;
  /** Every fault in the owner's own terms; called once for each. */
  readonly inOwnTerms?: (fault: LevelStoreError) => Error;
  /** Size of its files; level's 2 MiB when absent. */
  readonly fileBytes?: number;
  /** Files that it keeps open; level's 1,000 when absent. */
  readonly openFiles?: number;
}

/** Entries that are taken from level at a time; the first of a range is taken alone. */
const ENTRIES_PER_PART = 256;

/**
 * Opens the store in a folder, creating it where missing.
 * @throws LOCKED when another process holds it, UNUSABLE when the disk or the folder does not let it be
 * read or made (full, no right), CORRUPT when its files are not what was written
 */
export async function openLevelStore(
  folder: string,
  options: LevelStoreOptions,
): Promise<LevelStore> {
  try {
    await assertNamed(folder);
    const level = new Level<Buffer, Buffer>(folder, {
      keyEncoding: "buffer",
      valueEncoding: "buffer",
      cacheSize: options.cacheBytes,
      writeBufferSize: options.writeBufferBytes,
      ...(options.fileBytes === undefined ? {} : { maxFileSize: options.fileBytes }),
      ...(options.openFiles === undefined ? {} : { maxOpenFiles: options.openFiles }),
    });
    await level.open();
    return new CheckedStore(folder, level, options);
  } catch (cause) {
    const fault = openFault(folder, cause);
    throw options.inOwnTerms?.(fault) ?? fault;
  }
}

/** The file that names the list of a store's tables. */
const NAMING_FILE = "CURRENT";

const TABLE_NAME = /\.(ldb|sst)$/;

/**
 * Where the file is gone that names all others, level makes a new store in their place and deletes them.
 * No table is ever made before it, so that one without it is what an unfinished copy or a bad disk has left.
 */
async function assertNamed(folder: string): Promise<void> {
  // What cannot be listed is level's to tell.
  const names = await readdir(folder).catch((): string[] => []);
  if (names.includes(NAMING_FILE) || !names.some((name) => TABLE_NAME.test(name))) return;
  throw new Error(`Corruption: its file ${NAMING_FILE} is gone`);
}

function openFault(folder: string, cause: unknown): LevelStoreError {
  const reason = reasonOf(cause);
  const rest = { details: { folder, reason }, cause };
  if (LOCKED_REASON.test(reason)) {
    const message = `the store in ${folder} is in use by another process`;
    return new LevelStoreError("LOCKED", message, rest);
  }
  const message = `the store in ${folder} cannot be opened: ${reason}`;
  if (DAMAGE_REASON.test(reason)) return new LevelStoreError("CORRUPT", message, rest);
  // A full disk must not have anybody delete what lies on it.
  const advice = "its records are as they were; make room or the folder usable, then start again";
  return new LevelStoreError("UNUSABLE", `${message}: ${advice}`, rest);
}

/** The open store over level. */
class CheckedStore implements LevelStore {
  /**
   * Why a write failed. It may have left half a record in level's log; level writes on behind that, and
   * drops all of it when it is opened the next time, what was forced to disk included.
   */
  private failedWrite: string | undefined;

  constructor(
    private readonly folder: string,
    private readonly level: Level<Buffer, Buffer>,
    private readonly options: LevelStoreOptions,
  ) {}

  get(key: Buffer, snapshot?: LevelSnapshot): Buffer | undefined {
    let stored: Buffer | undefined;
    try {
      const { level } = this;
      stored = snapshot === undefined ? level.getSync(key) : level.getSync(key, { snapshot });
    } catch (cause) {
      throw this.readFault(cause, key);
    }
    return stored === undefined ? undefined : this.checked(key, stored);
  }

  async write(writes: readonly LevelWrite[], options: LevelWriteOptions): Promise<void> {
    const batch = this.batch();
    for (const write of writes) batch.add(write);
    await batch.write(options);
  }

  batch(): LevelBatch {
    // A chained batch takes each pair at once; an array of operations costs ten times as much
    // on the main thread (measured: 330 ms against 30 ms for 60,000 pairs).
    const batch = this.level.batch();
    return {
      add: ({ key, value }) => {
        if (value === undefined) batch.del(key);
        else batch.put(key, this.isFormat(key) ? Buffer.from(value) : sealValue(key, value));
      },
      write: async ({ durable }) => {
        this.assertWritable();
        try {
          await batch.write({ sync: durable });
        } catch (cause) {
          throw this.writeFault(cause);
        }
        // It may lie behind one that failed while it was under way.
        this.assertWritable();
      },
    };
  }

  private assertWritable(): void {
    const { folder, failedWrite: reason } = this;
    if (reason === undefined) return;
    const message = `an earlier write to ${folder} failed (${reason}): open it anew to write again`;
    throw this.fault("WRITE_FAILED", message, { details: { reason }, cause: undefined });
  }

  private writeFault(cause: unknown): Error {
    const reason = reasonOf(cause);
    this.failedWrite ??= reason;
    // Found by level while it merged files; it never writes again.
    if (DAMAGE_REASON.test(reason)) return this.damaged(undefined, reason, cause);
    const message = `cannot write to ${this.folder}: ${reason}`;
    return this.fault("WRITE_FAILED", message, { details: { reason }, cause });
  }

  async *entries(range: LevelRange): AsyncGenerator<[Buffer, Buffer], void> {
    const open = (options: RangeOptions) => this.level.iterator(options);
    for await (const part of this.parts(range, { open, keyOf: ([key]) => key })) {
      for (const [key, stored] of part) yield [key, this.checked(key, stored)];
    }
  }

  async few(range: LevelRange): Promise<[Buffer, Buffer][]> {
    const entries = await this.taken(this.level.iterator(rangeOptions(range)), range);
    return entries.map(([key, stored]) => [key, this.checked(key, stored)]);
  }

  async *keys(range: LevelRange): AsyncGenerator<Buffer, void> {
    const open = (options: RangeOptions) => this.level.keys(options);
    for await (const part of this.parts(range, { open, keyOf: (key) => key })) yield* part;
  }

  /** A range in parts, each read to its end: see `taken`. */
  private async *parts<Item>(
    range: LevelRange,
    { open, keyOf }: PartsOf<Item>,
  ): AsyncGenerator<Item[], void> {
    let left = range.limit ?? Number.POSITIVE_INFINITY;
    // One iterator is of one state by itself; all parts have to be of the same.
    const own = range.snapshot === undefined && left > 1 ? this.level.snapshot() : undefined;
    const whole = { ...range, snapshot: range.snapshot ?? own };
    let after: Buffer | undefined;
    let count = 1;
    try {
      while (left > 0) {
        const limit = Math.min(count, left);
        const part = await this.taken(open(rangeOptions(whole, after)), { ...range, limit });
        yield part;
        const last = part.at(-1);
        if (last === undefined || part.length < limit) return;
        left -= limit;
        [count, after] = [ENTRIES_PER_PART, keyOf(last)];
      }
    } finally {
      await own?.close();
    }
  }

  /**
   * What an iterator gives of a range, up to the limit. Level passes over what the system does not let be
   * read, and says so where the iterator ends: it is taken there.
   */
  private async taken<Item>(
    iterator: LevelIterator<Item>,
    { from, to, reverse, limit = Number.POSITIVE_INFINITY }: LevelRange,
  ): Promise<Item[]> {
    const found: Item[] = [];
    try {
      while (found.length < limit) {
        const count = Math.min(limit - found.length, ENTRIES_PER_PART);
        const items = await iterator.nextv(count);
        if (items.length === 0) return found;
        for (const item of items) found.push(item);
      }
      iterator.seek(reverse === true ? from : to);
      await iterator.nextv(2);
      return found;
    } catch (cause) {
      throw this.readFault(cause, undefined);
    } finally {
      await iterator.close();
    }
  }

  snapshot(): LevelSnapshot {
    return this.level.snapshot();
  }

  diskBytes(from: Buffer, to: Buffer): Promise<number> {
    return onNode(this.level).approximateSize(from, to);
  }

  compact(from: Buffer, to: Buffer): Promise<void> {
    return onNode(this.level).compactRange(from, to);
  }

  close(): Promise<void> {
    return this.level.close();
  }

  damage(reason: string): Error {
    return this.damaged(undefined, reason, undefined);
  }

  private checked(key: Buffer, stored: Buffer): Buffer {
    if (this.isFormat(key)) return stored;
    const value = openValue(key, stored);
    if (value === undefined) throw this.damaged(key, "its checksum is wrong", undefined);
    return value;
  }

  private isFormat(key: Buffer): boolean {
    const { formatKey } = this.options;
    return key.length === formatKey?.length && formatKey.equals(key);
  }

  private readFault(cause: unknown, key: Buffer | undefined): unknown {
    const reason = reasonOf(cause);
    if (DAMAGE_REASON.test(reason)) return this.damaged(key, reason, cause);
    // A store that was closed says so by a code of its own; what the system says has none where it is asked
    // for one key.
    if (!SYSTEM_REASON.test(reason)) return cause;
    const message = `cannot read from ${this.folder}: ${reason}`;
    return this.fault("READ_FAILED", message, { details: { reason }, cause });
  }

  private damaged(key: Buffer | undefined, reason: string, cause: unknown): Error {
    const record = key === undefined ? "" : ` (record 0x${key.toString("hex")})`;
    const message = `the store in ${this.folder} is damaged${record}: ${reason}`;
    const details = { reason, ...(key === undefined ? {} : { key }) };
    return this.fault("CORRUPT", message, { details, cause });
  }

  private fault(
    code: LevelStoreErrorCode,
    message: string,
    { details, cause }: { readonly details: ErrorDetails; readonly cause: unknown },
  ): Error {
    const { folder, options } = this;
    const fault = new LevelStoreError(code, message, { details: { folder, ...details }, cause });
    return options.inOwnTerms?.(fault) ?? fault;
  }
}

/** What level is on Node, and what its types leave out. */
interface NodeLevel {
  approximateSize(from: Buffer, to: Buffer): Promise<number>;
  compactRange(from: Buffer, to: Buffer): Promise<void>;
}

function isNodeLevel(level: object): level is NodeLevel {
  return "approximateSize" in level && "compactRange" in level;
}

function onNode(level: object): NodeLevel {
  if (!isNodeLevel(level)) throw new TypeError("level is not what it is on Node");
  return level;
}

type RangeOptions = ReturnType<typeof rangeOptions>;

/** @param after a key of the range: what follows it is meant, in the range's direction */
function rangeOptions({ from, to, reverse = false, snapshot }: LevelRange, after?: Buffer) {
  return {
    ...(after === undefined || reverse ? { gte: from } : { gt: after }),
    ...(after === undefined || !reverse ? { lte: to } : { lt: after }),
    reverse,
    ...(snapshot === undefined ? {} : { snapshot }),
  };
}

/**
 * Texts of level for files that are not what it wrote, or that the disk does not give back. Of one that is
 * shorter than it was it says that the argument is invalid.
 */
const DAMAGE_REASON =
  /^Corruption: |^IO error: .*: (Input\/output error|No such file or directory|Invalid argument)$/;

/** How it begins what the system has told it. */
const SYSTEM_REASON = /^IO error: /;

/**
 * How level says that somebody has the store. Not any "lock": the path in the text may have one
 * (/srv/blockchain), and so may the lock file that a read-only disk refuses.
 */
const LOCKED_REASON = /^IO error: lock |already held by process/;

/** What level says lies in the cause of its own error. */
function reasonOf(cause: unknown): string {
  return errorMessage(cause instanceof Error ? (cause.cause ?? cause) : cause);
}
