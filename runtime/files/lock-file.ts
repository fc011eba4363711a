/**
 * A lock between processes of one machine: a file with pid and start time of its holder, created by
 * a hard link, so that it appears whole or not at all. A lock whose holder is gone is replaced under a
 * second lock that is named after it: of several processes only one may replace one dead lock, and a
 * live lock is never touched. (Node has no flock.)
 */
import { randomUUID } from "node:crypto";
import { readFile, rename, rm } from "node:fs/promises";
import { AppError, errorCode } from "../../chain/errors.js";
import {
  isStillRunning,
  parseRecordedProcess,
  recordProcess,
  type RecordedProcess,
} from "../process/process-identity.js";
import { sleep } from "../process/task.js";
import { createFileOnce, PLAIN_MODE, replaceFile } from "./durable-file.js";

/** A live process holds the lock; `details.pid` is its id, where that is known. */
export class LockHeldError extends AppError<"LOCK_HELD"> {}

/** A lock that this process holds. */
export interface HeldLock {
  /** True when the former holder had died without releasing it. */
  readonly tookOver: boolean;
  /** Releases the lock; harmless when called again. Throws the system's fault. */
  release(): Promise<void>;
}

/** What a lock file says. */
interface LockRecord {
  readonly holder: RecordedProcess | undefined;
  /** Names this very lock, so that its replacement can be claimed. */
  readonly id: string;
}

/** Crashes in the middle of a replacement nest claims; more than a few in a row never happens. */
const MAX_CLAIM_DEPTH = 8;

/** Rounds of "the lock changed under our eyes" before giving up. */
const MAX_ROUNDS = 20;

/** Between two looks of who waits: locks that are waited for are held for some milliseconds. */
const POLL_MS = 5;

/**
 * Takes a lock for this process; this process is refused, too, while it holds it.
 * @throws LOCK_HELD when a live process holds it; the system's fault
 */
export async function takeLockFile(path: string): Promise<HeldLock> {
  const id = randomUUID();
  const content = `${JSON.stringify({ ...recordProcess(process.pid), id })}\n`;
  const tookOver = await acquire(path, content, 0);
  let released = false;
  return {
    tookOver,
    async release() {
      if (released) return;
      if ((await readLock(path))?.id === id) {
        // Renamed first: the unlink of a name that someone else just took would free their lock.
        const aside = `${path}.${id}`;
        await rename(path, aside);
        await rm(aside, { force: true });
      }
      released = true;
    },
  };
}

/**
 * Takes a lock as soon as nobody holds it.
 * @param patience fires when waiting ends
 * @throws LOCK_HELD when it is held still by then; the signal's reason; the system's fault
 */
export async function awaitLockFile(
  path: string,
  { patience, signal }: { readonly patience: AbortSignal; readonly signal: AbortSignal },
): Promise<HeldLock> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await takeLockFile(path);
    } catch (error) {
      if (!(error instanceof LockHeldError) || patience.aborted) throw error;
    }
    await sleep(POLL_MS, { signal });
  }
}

function parseLock(text: string): LockRecord {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && "id" in value) {
      const id = typeof value.id === "string" && /^[0-9a-f-]{36}$/.test(value.id) ? value.id : "";
      if (id !== "") return { holder: parseRecordedProcess(value), id };
    }
  } catch {
    // Not JSON: a lock from a crash or a foreign hand, held by nobody; handled below.
  }
  return { holder: undefined, id: "unreadable" };
}

async function readLock(path: string): Promise<LockRecord | undefined> {
  try {
    return parseLock(await readFile(path, "utf8"));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Takes one lock file; true when a dead holder's lock was replaced. */
async function acquire(path: string, content: string, depth: number): Promise<boolean> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (createFileOnce(path, content, PLAIN_MODE, { isPassing: true })) return false;
    const current = await readLock(path);
    if (current === undefined) continue; // Released between the two steps.
    const busy = current.holder !== undefined && isStillRunning(current.holder);
    if (busy || depth >= MAX_CLAIM_DEPTH) throw held(path, current.holder);
    const claim = `${path}.${current.id}`;
    await acquire(claim, content, depth + 1);
    try {
      // Only the holder of this claim may replace this lock, so what is read now stays true.
      if ((await readLock(path))?.id === current.id) {
        await replaceFile(path, content, PLAIN_MODE);
        return true;
      }
    } finally {
      await rm(claim, { force: true });
    }
  }
  throw held(path, undefined);
}

function held(path: string, holder: RecordedProcess | undefined): LockHeldError {
  const who = holder === undefined ? "another process" : `the process ${holder.pid}`;
  return new LockHeldError("LOCK_HELD", `${who} holds the lock ${path}`, {
    details: { pid: holder?.pid },
    retriable: true,
  });
}
