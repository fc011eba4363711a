/**
 * A lock between processes of one machine: a file with pid and start time of its holder, created by
 * a hard link, so that it appears whole or not at all. A lock whose holder is gone is replaced under a
 * second lock that is named after it: of several processes only one may replace one dead lock, and a
 * live lock is never touched. (Node has no flock.) Whether a holder in another container lives, whose
 * process cannot be seen, its sign of life tells, and of one on another machine the file's time, which moves;
 * locks that are held for a moment have neither.
 */
import { randomUUID } from "node:crypto";
import { readFile, rename, rm } from "node:fs/promises";
import { AppError, errorCode } from "../../chain/errors.js";
import {
  isOfAnotherBoot,
  isStillRunning,
  parseRecordedProcess,
  recordProcess,
  type RecordedProcess,
} from "../process/process-identity.js";
import { sleep } from "../process/task.js";
import { createFileOnce, PLAIN_MODE, replaceFile } from "./durable-file.js";
import {
  type BeatOwner,
  isBeating,
  isLifeShown,
  processSpace,
  showLife,
  startBeat,
} from "./sign-of-life.js";

/**
 * A live process holds the lock; `details.pid` is its id, where that is known, and
 * `details.isElsewhere` true for one in another container, `isFar` for one on another machine.
 */
export class LockHeldError extends AppError<"LOCK_HELD"> {}

/** A lock that this process holds. */
export interface HeldLock {
  /** True when the former holder had died without releasing it. */
  readonly tookOver: boolean;
  /**
   * Fires where others took this process for dead, as it stood still, or the file was deleted: another one
   * may work by now on what is locked. Told of locks only that are held for long.
   */
  readonly lost: AbortSignal;
  /** Releases the lock; harmless when called again. Throws the system's fault. */
  release(): Promise<void>;
}

/** What a lock file says. */
interface LockRecord {
  readonly holder: RecordedProcess | undefined;
  /** Container of the holder, where it shows a sign of life. */
  readonly space: string | undefined;
  /** The file's time moves as long as its holder lives. */
  readonly beats: boolean;
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
 * @param options `isLong`: it is held for as long as a process runs, and seen by other containers
 * @throws LOCK_HELD when a live process holds it; the system's fault
 */
export async function takeLockFile(
  path: string,
  { isLong = false }: { readonly isLong?: boolean } = {},
): Promise<HeldLock> {
  const id = randomUUID();
  const sign = isLong ? await showLife(signOf(path, id)) : undefined;
  const space = sign === undefined ? undefined : processSpace();
  const record = { ...recordProcess(process.pid), space, beats: isLong ? true : undefined, id };
  const content = `${JSON.stringify(record)}\n`;
  let tookOver: boolean;
  try {
    tookOver = await acquire(path, content, { depth: 0, first: path });
  } catch (error) {
    await sign?.end();
    throw error;
  }
  const losing = new AbortController();
  const owner: BeatOwner = {
    whose: (text: string) => {
      const { id: found } = parseLock(text);
      if (found === id) return "own";
      return found === UNREADABLE ? "unreadable" : "other";
    },
    onLost: () => losing.abort(),
  };
  const beat = isLong ? startBeat(path, owner) : undefined;
  let released = false;
  return {
    tookOver,
    lost: losing.signal,
    async release() {
      if (released) return;
      beat?.end();
      if ((await readLock(path))?.id === id) {
        // Renamed first: the unlink of a name that someone else just took would free their lock.
        const aside = `${path}.${id}`;
        await rename(path, aside);
        await rm(aside, { force: true });
      }
      await sign?.end();
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

/** The id of a lock of which nothing can be read. */
const UNREADABLE = "unreadable";

function parseLock(text: string): LockRecord {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && "id" in value) {
      const id = typeof value.id === "string" && /^[0-9a-f-]{36}$/.test(value.id) ? value.id : "";
      const space = "space" in value && typeof value.space === "string" ? value.space : undefined;
      const beats = "beats" in value && value.beats === true;
      if (id !== "") return { holder: parseRecordedProcess(value), space, beats, id };
    }
  } catch {
    // Not JSON: a lock from a crash or a foreign hand, held by nobody; handled below.
  }
  return { holder: undefined, space: undefined, beats: false, id: UNREADABLE };
}

/** The sign of life of whoever holds a lock, or claims its replacement. */
function signOf(path: string, id: string): string {
  return `${path}.${id}.sock`;
}

/** A holder whose process this one cannot see, as it is in another container. */
function isElsewhere({ space }: LockRecord): boolean {
  return space !== undefined && space !== processSpace();
}

/** A holder on another machine, or of this one before it was started anew. */
function isFar({ holder, beats }: Pick<LockRecord, "holder" | "beats">): boolean {
  return beats && holder !== undefined && isOfAnotherBoot(holder);
}

/**
 * A holder that is no process here and could show no sign of life, as its folder takes no socket: it may be
 * in another container. Where there are no containers, all processes are seen.
 */
function isBeyond({ holder, beats, space }: LockRecord): boolean {
  const isSilent = beats && space === undefined && processSpace() !== undefined;
  return isSilent && holder !== undefined && !isFar({ holder, beats }) && !isStillRunning(holder);
}

async function isHeld(path: string, lock: LockRecord, first: string): Promise<boolean> {
  if (lock.holder === undefined) return false;
  if (isFar(lock)) return isBeating(path);
  if (isElsewhere(lock)) return isLifeShown(signOf(first, lock.id));
  return isBeyond(lock) ? isBeating(path) : isStillRunning(lock.holder);
}

async function readLock(path: string): Promise<LockRecord | undefined> {
  try {
    return parseLock(await readFile(path, "utf8"));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Takes one lock file; true when a dead holder's lock was replaced.
 * @param at `first`: the lock that all this is about, whatever claim is taken for it
 */
async function acquire(
  path: string,
  content: string,
  { depth, first }: { readonly depth: number; readonly first: string },
): Promise<boolean> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (createFileOnce(path, content, PLAIN_MODE, { isPassing: true })) return false;
    const current = await readLock(path);
    if (current === undefined) continue; // Released between the two steps.
    const busy = await isHeld(path, current, first);
    if (busy || depth >= MAX_CLAIM_DEPTH) throw held(path, current);
    const claim = `${path}.${current.id}`;
    await acquire(claim, content, { depth: depth + 1, first });
    try {
      // Only the holder of this claim may replace this lock, so what is read now stays true.
      if ((await readLock(path))?.id === current.id) {
        await replaceFile(path, content, PLAIN_MODE);
        await rm(signOf(first, current.id), { force: true });
        return true;
      }
    } finally {
      await rm(claim, { force: true });
    }
  }
  throw held(path, undefined);
}

function held(path: string, lock: LockRecord | undefined): LockHeldError {
  const isHidden = lock !== undefined && (isElsewhere(lock) || isBeyond(lock));
  const isSeen = lock?.holder !== undefined && !isHidden && !isFar(lock);
  const pid = isSeen ? lock.holder?.pid : undefined;
  const who = pid === undefined ? "another process" : `the process ${pid}`;
  return new LockHeldError("LOCK_HELD", `${who} holds the lock ${path}`, {
    details: {
      pid,
      isElsewhere: isHidden,
      isFar: lock !== undefined && isFar(lock),
    },
    retriable: true,
  });
}
