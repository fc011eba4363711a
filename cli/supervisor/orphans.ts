/**
 * Processes of a kit that was killed. They end by themselves within 5 s when their channel to the
 * kit closes; the next start waits for them. The record names pid and start time, so that a
 * foreign process with a pid used again is never taken for one of them, and the folder that it lies
 * in, so that whoever starts a copy of a home ends no process of the kit that runs on the home itself.
 */
import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { PLAIN_MODE, readTextIfPresent, replaceFile } from "../home/home-file.js";
import { CliError } from "../errors.js";
import {
  recordProcess,
  isStillRunning,
  parseRecordedProcess,
  type RecordedProcess,
} from "../../runtime/process/process-identity.js";
import { sleep } from "../../runtime/process/task.js";

/** A recorded child of the kit. */
export interface RecordedChild extends RecordedProcess {
  readonly name: string;
  /** Where its record was written, without links; "" in records of older releases. */
  readonly folder: string;
}

/** Record of the living children, in the home. */
export interface ChildRecord {
  add(name: string, pid: number): void;
  remove(pid: number): void;
  /** Resolves when everything said so far is on disk, or could not be written. */
  settled(): Promise<void>;
}

/** Time that orphans get to end by themselves: the 5 s of the contract and some scheduling. */
export const ORPHAN_WAIT_MS = 8_000;

/** Time until a killed process is really gone. */
const KILL_WAIT_MS = 2_000;

const POLL_MS = 50;

/**
 * Opens the record in a folder that is there; what it said before is overwritten by the first change.
 * @param lost fires where the record is another kit's from then on
 */
export function createChildRecord(path: string, lost: AbortSignal): ChildRecord {
  const folder = realpathSync(dirname(path));
  const children = new Map<number, RecordedChild>();
  let writing: Promise<void> = Promise.resolve();
  const write = (): void => {
    const text = `${JSON.stringify([...children.values()])}\n`;
    // The record only spares the next start a wait: a full disk must not stop the kit for it.
    writing = writing
      .then(() => (lost.aborted ? undefined : replaceFile(path, text, PLAIN_MODE)))
      .catch(() => undefined);
  };
  return {
    add(name, pid) {
      children.set(pid, { name, ...recordProcess(pid), folder });
      write();
    },
    remove(pid) {
      if (children.delete(pid)) write();
    },
    settled: () => writing,
  };
}

/** Children of a former kit on this home that still run. */
export async function findOrphans(path: string): Promise<readonly RecordedChild[]> {
  const text = await readTextIfPresent(path);
  if (text === undefined) return [];
  const own = realpathSync(dirname(path));
  return parseRecord(text).filter((child) => child.folder === own && isStillRunning(child));
}

/**
 * Waits until the children of a former kit are gone. One that is stuck is killed, if its start time
 * proves that it is the recorded one.
 * @throws HOME_ORPHANS when one survives
 */
export async function waitForOrphans(
  path: string,
  options: {
    readonly signal: AbortSignal;
    readonly onWait: (children: readonly RecordedChild[]) => void;
    readonly timeoutMs?: number;
  },
): Promise<void> {
  const orphans = await findOrphans(path);
  if (orphans.length === 0) return;
  options.onWait(orphans);
  const { signal } = options;
  const stuck = await waitUntilGone(orphans, {
    timeoutMs: options.timeoutMs ?? ORPHAN_WAIT_MS,
    signal,
  });
  for (const child of stuck.filter(({ startedAt }) => startedAt !== "")) {
    try {
      process.kill(child.pid, "SIGKILL");
    } catch {
      // Gone meanwhile, or another user's: the check below tells which.
    }
  }
  const left = await waitUntilGone(stuck, { timeoutMs: KILL_WAIT_MS, signal });
  if (left.length === 0) return;
  const named = left.map(({ name, pid }) => `${name} (process ${pid})`).join(", ");
  throw new CliError("HOME_ORPHANS", `A former kit on this home still runs: ${named}; end it.`);
}

function parseRecord(text: string): RecordedChild[] {
  try {
    const value: unknown = JSON.parse(text);
    if (!Array.isArray(value)) return [];
    return value.flatMap((entry: unknown) => {
      const identity = parseRecordedProcess(entry);
      if (identity === undefined || typeof entry !== "object" || entry === null) return [];
      const name = "name" in entry && typeof entry.name === "string" ? entry.name : "process";
      const folder = "folder" in entry && typeof entry.folder === "string" ? entry.folder : "";
      return [{ name, ...identity, folder }];
    });
  } catch {
    return []; // Cut off by a crash: the port check still finds whatever holds a port.
  }
}

async function waitUntilGone(
  children: readonly RecordedChild[],
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<readonly RecordedChild[]> {
  const deadline = performance.now() + options.timeoutMs;
  let left = children.filter(isStillRunning);
  while (left.length > 0 && performance.now() < deadline) {
    await sleep(POLL_MS, { signal: options.signal });
    left = left.filter(isStillRunning);
  }
  return left;
}
