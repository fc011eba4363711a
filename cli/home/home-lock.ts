/**
 * The lock of a home: a file with pid and start time of its holder, created by a hard link, so
 * that it appears whole or not at all. A lock whose holder is gone is replaced under a second lock
 * that is named after it: of several starts only one may replace one dead lock, and a live lock is
 * never touched. (Node has no flock.)
 */
import { randomUUID } from "node:crypto";
import { rename, rm } from "node:fs/promises";
import { createFileOnce, PLAIN_MODE, readTextIfPresent, replaceFile } from "./home-file.js";
import { CliError } from "../errors.js";
import { inHome } from "./home.js";
import {
  recordProcess,
  isStillRunning,
  parseRecordedProcess,
  type RecordedProcess,
} from "../../runtime/process/process-identity.js";

/** A lock that this process holds. */
export interface HeldLock {
  /** True when the former holder had died without releasing it. */
  readonly tookOver: boolean;
  /** Releases the lock; harmless when called again. */
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

/**
 * Takes the lock of a home for this process.
 * @param home named in the message of the fault
 * @throws HOME_LOCKED when a live process holds it, HOME_UNUSABLE when it cannot be written
 */
export async function lockHome(path: string, home: string): Promise<HeldLock> {
  const id = randomUUID();
  const content = `${JSON.stringify({ ...recordProcess(process.pid), id })}\n`;
  const tookOver = await inHome(path, () => acquire(path, content, 0)).catch((error: unknown) => {
    if (!(error instanceof CliError) || error.code !== "HOME_LOCKED") throw error;
    const pid = typeof error.details.pid === "number" ? ` (process ${error.details.pid})` : "";
    const message = `A kit is already running on the home ${home}${pid}; stop it or use --home.`;
    throw new CliError("HOME_LOCKED", message, { details: error.details });
  });
  let released = false;
  return {
    tookOver,
    async release() {
      if (released) return;
      released = true;
      if ((await readLock(path))?.id !== id) return;
      // Renamed first: the unlink of a name that someone else just took would free their lock.
      const aside = `${path}.${id}`;
      await rename(path, aside);
      await rm(aside, { force: true });
    },
  };
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
  const text = await readTextIfPresent(path);
  return text === undefined ? undefined : parseLock(text);
}

/** Takes one lock file; true when a dead holder's lock was replaced. */
async function acquire(path: string, content: string, depth: number): Promise<boolean> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (await createFileOnce(path, content, PLAIN_MODE)) return false;
    const current = await readLock(path);
    if (current === undefined) continue; // Released between the two steps.
    const busy = current.holder !== undefined && isStillRunning(current.holder);
    if (busy || depth >= MAX_CLAIM_DEPTH) throw locked(path, current.holder);
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
  throw locked(path, undefined);
}

function locked(path: string, holder: RecordedProcess | undefined): CliError {
  const who = holder === undefined ? "another start" : `a kit with process id ${holder.pid}`;
  return new CliError("HOME_LOCKED", `The home is in use by ${who} (lock file ${path}).`, {
    details: { pid: holder?.pid },
  });
}
