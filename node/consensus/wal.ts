/**
 * The write-ahead log of consensus: whatever moved the machine since the last decided height, so
 * that a restart comes to the same place. A record is crc32c (4 bytes) | length (4) | data, as in
 * CometBFT; a torn tail is cut off.
 */
import { type FileHandle, mkdir, open, readFile, truncate } from "node:fs/promises";
import path from "node:path";
import { invalidMessage, ProtoReader, ProtoWriter } from "../../chain/consensus/protobuf.js";
import { readInt32 } from "../../chain/consensus/vote.js";
import { ChainError, errorCode } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import { ConsensusError } from "./consensus-error.js";
import { STEP, type TimeoutStep } from "./consensus-state.js";
import { crc32c } from "./crc32c.js";
import { replaceFile } from "./durable-file.js";
import { decodeRoundMessage, encodeRoundMessage, type RoundMessage } from "./message-codec.js";

/** One thing that moved the machine, or the mark that a height is stored. */
export type WalRecord =
  | { readonly type: "message"; readonly isOwn: boolean; readonly message: RoundMessage }
  | {
      readonly type: "timeout";
      readonly height: Height;
      readonly round: number;
      readonly step: TimeoutStep;
    }
  | { readonly type: "end-height"; readonly height: Height };

/** As CometBFT: no message is larger; a length above it is damage. */
const MAX_RECORD_BYTES = 1_048_576;
/** Buffered bytes after which they go to the file, unforced. */
const FLUSH_BYTES = 1_048_576;
/** Size at which the end of a height starts the file anew: what is before is never read again. */
const ROTATE_BYTES = 16 * 1_048_576;
const HEAD_BYTES = 8;

const FIELD = { own: 1, peer: 2, timeout: 3, end: 4 } as const;
const TIMEOUT_STEPS: readonly TimeoutStep[] = [
  STEP.newHeight,
  STEP.propose,
  STEP.prevoteWait,
  STEP.precommitWait,
];

/** What an opened log holds of the height that was in progress. */
export interface WalTail {
  /** Height of the last end mark; undefined when there is none. */
  readonly endHeight: Height | undefined;
  /** Records after that mark. */
  readonly records: readonly WalRecord[];
  /** Bytes of a torn or damaged tail that were cut off. */
  readonly cutBytes: number;
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
   * Opens `<folder>/wal`, making it where missing, and reads what is to be replayed.
   * @throws WAL_WRITE_FAILED
   */
  static async open(folder: string): Promise<{ readonly wal: Wal; readonly tail: WalTail }> {
    const file = path.join(folder, "wal");
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const handle = await open(file, "a", 0o600);
      const bytes = await readFile(file);
      const { tail, goodBytes } = readTail(bytes);
      if (goodBytes < bytes.length) await truncate(file, goodBytes);
      return { wal: new Wal(file, handle, goodBytes), tail };
    } catch (cause) {
      throw writeFailed(file, cause);
    }
  }

  /**
   * Adds a record; it is on disk after the next `sync`. Throws WAL_WRITE_FAILED, and a RangeError
   * for a record so long that it would be read back as damage.
   */
  async append(record: WalRecord): Promise<void> {
    const data = encodeRecord(record);
    if (data.length > MAX_RECORD_BYTES) throw new RangeError("a record of the log is too long");
    const bytes = frame(data);
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
    await this.append({ type: "end-height", height });
    if (this.sizeBytes + this.bufferedBytes > ROTATE_BYTES) await this.startAnew();
    else await this.sync();
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

  /** Replaces the file by one that begins with the buffered end mark. */
  private async startAnew(): Promise<void> {
    const mark = this.buffered.at(-1);
    if (mark === undefined) throw new RangeError("the end mark is not buffered");
    await this.guard(async () => {
      await replaceFile(this.file, mark);
      await this.handle.close();
      this.handle = await open(this.file, "a", 0o600);
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
  const reason = errorCode(cause);
  return new ConsensusError("WAL_WRITE_FAILED", `cannot write ${file} (${reason})`, {
    details: { reason },
    cause,
  });
}

function frame(data: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(crc32c(data), 0);
  head.writeUInt32BE(data.length, 4);
  return Buffer.concat([head, data]);
}

/** Reads records until the first that is incomplete or damaged; what follows it is cut off. */
function readTail(bytes: Buffer): { readonly tail: WalTail; readonly goodBytes: number } {
  let at = 0;
  let endHeight: Height | undefined;
  let records: WalRecord[] = [];
  for (;;) {
    const next = recordAt(bytes, at);
    if (next === undefined) break;
    at = next.end;
    if (next.record.type === "end-height") {
      endHeight = next.record.height;
      records = [];
    } else {
      records.push(next.record);
    }
  }
  return { tail: { endHeight, records, cutBytes: bytes.length - at }, goodBytes: at };
}

function recordAt(bytes: Buffer, at: number): { record: WalRecord; end: number } | undefined {
  if (at + HEAD_BYTES > bytes.length) return undefined;
  const end = at + HEAD_BYTES + bytes.readUInt32BE(at + 4);
  const isLong = end > at + HEAD_BYTES + MAX_RECORD_BYTES;
  if (isLong || end > bytes.length) return undefined;
  const data = bytes.subarray(at + HEAD_BYTES, end);
  if (crc32c(data) !== bytes.readUInt32BE(at)) return undefined;
  try {
    return { record: decodeRecord(data), end };
  } catch (error) {
    if (error instanceof ChainError) return undefined;
    throw error;
  }
}

function encodeRecord(record: WalRecord): Buffer {
  const writer = new ProtoWriter();
  switch (record.type) {
    case "message": {
      const field = record.isOwn ? FIELD.own : FIELD.peer;
      return writer.message(field, encodeRoundMessage(record.message)).finish();
    }
    case "timeout": {
      const { height, round, step } = record;
      const place = new ProtoWriter().integer(1, height).integer(2, round).integer(3, step);
      return writer.message(FIELD.timeout, place.finish()).finish();
    }
    default: {
      const mark = new ProtoWriter().integer(1, record.height).finish();
      return writer.message(FIELD.end, mark).finish();
    }
  }
}

function decodeRecord(data: Uint8Array): WalRecord {
  const reader = new ProtoReader(data, Object.values(FIELD));
  for (const [field, isOwn] of [[FIELD.own, true] as const, [FIELD.peer, false] as const]) {
    if (!reader.has(field)) continue;
    return { type: "message", isOwn, message: decodeRoundMessage(reader.bytes(field)) };
  }
  if (reader.has(FIELD.end)) {
    const mark = new ProtoReader(reader.bytes(FIELD.end), [1]);
    return { type: "end-height", height: mark.count(1) };
  }
  const place = new ProtoReader(reader.bytes(FIELD.timeout), [1, 2, 3]);
  const step = TIMEOUT_STEPS.find((one) => one === place.count(3));
  if (step === undefined) throw invalidMessage("a timeout of an unknown step");
  return { type: "timeout", height: place.count(1), round: readInt32(place, 2), step };
}
