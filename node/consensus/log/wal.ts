/**
 * The write-ahead log of consensus: whatever moved the machine since the last decided height, so
 * that a restart comes to the same place.
 */
import { type FileHandle, link, open, rm } from "node:fs/promises";
import path from "node:path";
import { errorCode } from "../../../chain/errors.js";
import type { Height } from "../../../chain/hex.js";
import { removeDrafts, replaceFile, SECRET_MODE } from "../../../runtime/files/durable-file.js";
import { ensureFolder, FolderError, syncFolder } from "../../../runtime/files/folder.js";
import { ConsensusError } from "../consensus-error.js";
import { frameOf, type WalRecord } from "./records.js";
import { readTail, type WalTail } from "./tail.js";

/** Buffered bytes after which they go to the file, unforced. */
const FLUSH_BYTES = 1_048_576;
/** Size at which the end of a height starts the file anew: what is before is never read again. */
const ROTATE_BYTES = 16 * 1_048_576;
/**
 * Bytes that are read at once. The system gives no file of 2 GiB in one, and a height that nobody can
 * decide for weeks has a block of each round in the log.
 */
const READ_BYTES = 16 * 1_048_576;
/** Damaged files that are kept aside; with so many the last one makes room. */
const MAX_KEPT_FILES = 10;

/** What opening a log found. */
export interface OpenedWal {
  readonly wal: Wal;
  readonly tail: WalTail;
  /** Where the file was kept as it was found; undefined where nothing in it was damaged. */
  readonly keptFile: string | undefined;
}

/** The open log; calls must not overlap. */
export class Wal {
  private buffered: Buffer[] = [];
  private bufferedBytes = 0;
  /** Something was written since the last force to disk. */
  private isDirty = false;

  private constructor(
    private readonly file: string,
    private handle: FileHandle,
    private sizeBytes: number,
  ) {}

  /**
   * Opens `<folder>/wal`, making it where missing, and reads what is to be replayed. A damaged file
   * is kept aside, and one that says the same without the damage takes its place. Call it with the store
   * locked: drafts of another process are taken for those of one that was killed.
   * @param storedHeight newest height in the store
   * @throws WAL_WRITE_FAILED
   */
  static async open(folder: string, storedHeight: Height): Promise<OpenedWal> {
    const file = path.join(folder, "wal");
    try {
      ensureFolder(folder);
      await removeDrafts(file);
      await (await open(file, "a", SECRET_MODE)).close();
      await syncFolder(folder);
      const read = readTail(await readWhole(file), storedHeight);
      const { tail } = read;
      const keptFile = tail.damagedBytes > 0 ? await keepAside(file) : undefined;
      // Also for a torn tail: what is appended must not follow half a record.
      const isWhole = tail.damagedBytes === 0 && tail.cutBytes === 0;
      if (!isWhole) await replaceFile(file, read.content, SECRET_MODE);
      const handle = await open(file, "a", SECRET_MODE);
      const { size: sizeBytes } = await handle.stat();
      return { wal: new Wal(file, handle, sizeBytes), tail, keptFile };
    } catch (cause) {
      throw writeFailed(file, cause);
    }
  }

  /**
   * Adds a record; it is on disk after the next `sync`. Throws WAL_WRITE_FAILED, and a RangeError
   * for a record so long that it would be read back as damage.
   */
  async append(record: WalRecord): Promise<void> {
    const bytes = frameOf(record);
    this.buffered.push(bytes);
    this.bufferedBytes += bytes.length;
    if (this.bufferedBytes >= FLUSH_BYTES) await this.flush();
  }

  /** Forces everything to disk. Throws WAL_WRITE_FAILED. */
  async sync(): Promise<void> {
    await this.flush();
    if (!this.isDirty) return;
    await this.guard(() => this.handle.datasync());
    this.isDirty = false;
  }

  /** Marks a height as stored, on disk when it resolves. Throws WAL_WRITE_FAILED. */
  async endHeight(height: Height): Promise<void> {
    const mark: WalRecord = { type: "end-height", height };
    if (this.sizeBytes + this.bufferedBytes > ROTATE_BYTES) {
      await this.startAnew(frameOf(mark));
    } else {
      await this.append(mark);
      await this.sync();
    }
  }

  /** Writes what is buffered and closes. */
  async close(): Promise<void> {
    try {
      await this.sync();
    } finally {
      await this.handle.close();
    }
  }

  private async flush(): Promise<void> {
    if (this.bufferedBytes === 0) return;
    const bytes = Buffer.concat(this.buffered);
    this.buffered = [];
    this.bufferedBytes = 0;
    this.isDirty = true;
    await this.guard(() => this.handle.appendFile(bytes));
    this.sizeBytes += bytes.length;
  }

  /** Replaces the file, and what is buffered, by one that begins with the end mark. */
  private async startAnew(mark: Buffer): Promise<void> {
    await this.guard(async () => {
      await replaceFile(this.file, mark, SECRET_MODE);
      await this.handle.close();
      this.handle = await open(this.file, "a", SECRET_MODE);
    });
    this.buffered = [];
    this.bufferedBytes = 0;
    this.isDirty = false;
    this.sizeBytes = mark.length;
  }

  private async guard(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (cause) {
      throw writeFailed(this.file, cause);
    }
  }
}

function writeFailed(file: string, cause: unknown): ConsensusError {
  const reason = cause instanceof FolderError ? cause.message : errorCode(cause);
  return new ConsensusError("WAL_WRITE_FAILED", `cannot write ${file} (${reason})`, {
    details: { reason },
    cause,
  });
}

async function readWhole(file: string): Promise<Buffer> {
  const handle = await open(file, "r");
  try {
    const { size: sizeBytes } = await handle.stat();
    const bytes = Buffer.allocUnsafe(sizeBytes);
    let at = 0;
    while (at < sizeBytes) {
      const length = Math.min(READ_BYTES, sizeBytes - at);
      const { bytesRead } = await handle.read(bytes, at, length, at);
      if (bytesRead === 0) break;
      at += bytesRead;
    }
    return bytes.subarray(0, at);
  } finally {
    await handle.close();
  }
}

/** Gives a file a second name beside it, which stays when the first becomes another file's. */
async function keepAside(file: string): Promise<string> {
  for (let number = 1; number < MAX_KEPT_FILES; number++) {
    const kept = `${file}.damaged-${number}`;
    try {
      await link(file, kept);
      return kept;
    } catch (error) {
      if (errorCode(error) !== "EEXIST") throw error;
    }
  }
  const kept = `${file}.damaged-${MAX_KEPT_FILES}`;
  await rm(kept, { force: true });
  await link(file, kept);
  return kept;
}
