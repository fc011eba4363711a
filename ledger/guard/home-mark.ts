/**
 * What a home remembers of its ledger: which one it is and how far it was told to others. The
 * database may come back from an older backup, or not at all; this file beside it does not follow.
 */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { errorCode, errorMessage } from "../../chain/errors.js";
import { replaceFile, SECRET_MODE } from "../../runtime/files/durable-file.js";
import { makeFolders } from "../../runtime/files/folder.js";
import { awaitLockFile, type HeldLock, LockHeldError } from "../../runtime/files/lock-file.js";
import { Batcher } from "../../runtime/process/batcher.js";
import { limitedSignal } from "../../runtime/process/task.js";
import { LedgerError } from "../errors.js";

/** How far a ledger was told to others. It never holds more than is committed. */
export interface LedgerMark {
  /** Random identity made with the database. */
  readonly ledgerId: string;
  /** Epoch of the ledger's events. */
  readonly epoch: number;
  /** All lower address indexes may have been given to customers. */
  readonly nextAddressIndex: number;
  /**
   * When the last of them was given out, as its ledger says: one of another time may be another customer's.
   * Undefined where there is none, and in marks of former releases.
   */
  readonly addressAt?: string | undefined;
  /** Highest event number that may have been read. */
  readonly eventSeq: number;
  /**
   * When that event was written, as its ledger says: an event of another time is another one. Undefined
   * where the number has none, as at the end of a recovery, and in marks of former releases.
   */
  readonly eventAt?: string | undefined;
  /**
   * When that was read, by the database's clock. What was told was written before, also what began behind
   * that event; what another life of the ledger has written under these numbers began later.
   */
  readonly readAt?: string | undefined;
}

/** A recovery goes on behind what is remembered: that has to have a number, too. */
const MAX_EPOCH = 2 ** 31 - 2;
const MAX_EVENT_SEQ = 2 ** 52;

/** Indexes below an xpub. */
const MAX_ADDRESSES = 2 ** 31;

/** A loss is written into the ledger with it and stays there: it must be one that can be recovered. */
const markFile = z.strictObject({
  ledgerId: z.uuid(),
  epoch: z.int().min(1).max(MAX_EPOCH),
  nextAddressIndex: z.int().min(0).max(MAX_ADDRESSES),
  addressAt: z.iso.datetime().optional(),
  eventSeq: z.int().min(0).max(MAX_EVENT_SEQ),
  eventAt: z.iso.datetime().optional(),
  readAt: z.iso.datetime().optional(),
});

/** Marks that one write may cover; more are no harm, they are bounded by open requests. */
const MAX_MARKS = 10_000;

/** The lock is held for some milliseconds: whoever keeps it for longer hangs. */
const PATIENCE_MS = 5_000;

/** The file of one home. Several processes may write it, none lowers what another one has told. */
export class HomeMark {
  readonly #path: string;
  readonly #writes: Batcher<LedgerMark, LedgerMark>;
  #value: LedgerMark | undefined;
  /** Set while this process holds the lock, or could not let go of it. */
  #lock: HeldLock | undefined;

  private constructor(path: string, value: LedgerMark | undefined) {
    this.#path = path;
    this.#value = value;
    this.#writes = new Batcher({ run: (marks) => this.#write(marks), maxBatchItems: MAX_MARKS });
  }

  /**
   * Reads `<home>/data/ledger-mark.json`.
   * @throws HOME_MARK_UNUSABLE for a file that cannot be read: it is never taken for a missing one
   */
  static async open(home: string): Promise<HomeMark> {
    const path = markPath(home);
    return new HomeMark(path, await readMark(path));
  }

  /** What is remembered; undefined in a home that never saw its ledger. */
  get value(): LedgerMark | undefined {
    return this.#value;
  }

  /**
   * Remembers at least this; on disk when it resolves. Calls that come together share one write.
   * @throws HOME_MARK_UNUSABLE
   */
  async raise(mark: LedgerMark): Promise<void> {
    if (this.#value !== undefined && covers(this.#value, mark)) return;
    await this.#writes.addOne(mark);
  }

  /**
   * Beside what is on disk: another process of the home may have told more than this one knows. Read and
   * written under a lock, or what it writes in between would be lost.
   */
  async #write(marks: readonly LedgerMark[]): Promise<LedgerMark[]> {
    await this.#takeLock();
    try {
      const onDisk = await readMark(this.#path);
      const known = this.#value === undefined ? onDisk : highest(onDisk, this.#value);
      const next = marks.reduce((left, right) => highest(left, right), known ?? marks[0]);
      if (next === undefined) return [];
      await replaceFile(this.#path, `${JSON.stringify(next, null, 2)}\n`, SECRET_MODE);
      this.#value = next;
      return marks.map(() => next);
    } catch (cause) {
      throw cause instanceof LedgerError ? cause : unusable(this.#path, "written", cause);
    } finally {
      // What stands is on disk; a disk that does not let go of the lock is asked again before the next write.
      await this.#dropLock().catch(() => undefined);
    }
  }

  async #takeLock(): Promise<void> {
    const patience = limitedSignal([], PATIENCE_MS);
    const { signal } = new AbortController();
    try {
      await this.#dropLock();
      makeFolders(dirname(this.#path));
      this.#lock = await awaitLockFile(`${this.#path}.lock`, { patience, signal });
    } catch (cause) {
      throw unusable(this.#path, "written", cause);
    }
  }

  async #dropLock(): Promise<void> {
    await this.#lock?.release();
    this.#lock = undefined;
  }
}

/** Where a home's mark lies. */
export function markPath(home: string): string {
  return join(home, "data", "ledger-mark.json");
}

async function readMark(path: string): Promise<LedgerMark | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if (errorCode(cause) === "ENOENT") return undefined;
    throw unusable(path, "read", cause);
  }
  try {
    return markFile.parse(JSON.parse(text));
  } catch (cause) {
    throw unusable(path, "understood", cause);
  }
}

function covers(known: LedgerMark, mark: LedgerMark): boolean {
  return (
    known.ledgerId === mark.ledgerId &&
    known.epoch >= mark.epoch &&
    known.nextAddressIndex >= mark.nextAddressIndex &&
    known.eventSeq >= mark.eventSeq
  );
}

/** Counters never fall; the identity is that of the later epoch, and the times those of its last ones. */
function highest(left: LedgerMark | undefined, right: LedgerMark): LedgerMark {
  if (left === undefined) return right;
  const last = (counter: "eventSeq" | "nextAddressIndex") => {
    const isLater =
      right.epoch === left.epoch ? right[counter] > left[counter] : right.epoch > left.epoch;
    const told = isLater ? right : left;
    const count = Math.max(left[counter], right[counter]);
    const times: Partial<LedgerMark> = told[counter] === count ? told : {};
    return { count, times };
  };
  const { count: nextAddressIndex, times: ofAddress } = last("nextAddressIndex");
  const { count: eventSeq, times } = last("eventSeq");
  return {
    ledgerId: right.epoch >= left.epoch ? right.ledgerId : left.ledgerId,
    epoch: Math.max(left.epoch, right.epoch),
    nextAddressIndex,
    addressAt: ofAddress.addressAt,
    eventSeq,
    eventAt: times.eventAt,
    readAt: times.readAt,
  };
}

function unusable(path: string, what: string, cause: unknown): LedgerError {
  // Its words name the process that holds the lock: whoever reads of it has to end that one.
  const isInWords = errorCode(cause) === "UNKNOWN" || cause instanceof LockHeldError;
  const reason = isInWords ? errorMessage(cause) : errorCode(cause);
  const message = `what the home remembers of its ledger cannot be ${what}: ${path} (${reason})`;
  return new LedgerError("HOME_MARK_UNUSABLE", message, {
    details: { path },
    retriable: what === "written",
    cause,
  });
}
