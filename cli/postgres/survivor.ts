/** A server that outlived a killed kit: it is recognised by its data folder and stopped. */
import { readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  childrenOf,
  type ProcessIdentity,
  identifyProcess,
  isRunning,
  runningProcesses,
  signalProcess,
} from "../../runtime/process/process-identity.js";
import { sleep } from "../../runtime/process/task.js";
import { EmbeddedPostgresError } from "./errors.js";

/** Time for an orderly end (fast shutdown, with a checkpoint) before SIGKILL; the guardian gives as much. */
export const STOP_GRACE_MS = 3_500;

/** Time for the kernel to take away a killed process. */
const KILL_GRACE_MS = 3_000;

const POLL_MS = 20;

/** What a server writes into `postmaster.pid`. */
export interface PostmasterFile {
  readonly pid: number;
  /** "starting", "ready", "stopping" or "" when not written yet. */
  readonly status: string;
}

/** Reads `postmaster.pid` of a cluster; undefined without a readable one. */
export function readPostmasterFile(folder: string): PostmasterFile | undefined {
  try {
    const lines = readFileSync(join(folder, "postmaster.pid"), "utf8").split("\n");
    const pid = Number(lines[0]);
    return Number.isSafeInteger(pid) && pid > 0
      ? { pid, status: (lines[7] ?? "").trim() }
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Stops a server that still runs on this folder, kills what a killed one has left running, and removes
 * a stale `postmaster.pid`, whose process id may by now belong to a stranger. The caller holds the home's
 * lock and has claimed a folder that the home links to, so no other kit uses it.
 * @throws SURVIVOR_STUCK when it cannot be ended, or the signal's reason
 */
export async function stopSurvivor(folder: string, signal: AbortSignal): Promise<void> {
  const server = findServer(folder);
  if (server !== undefined) {
    await endServer(server, signal);
  }
  const left = runningProcesses().filter(({ pid }) => isPartOf(pid, folder));
  await kill(left, signal);
  // Where all processes can be seen no server is left, whatever the file says: of a machine that lost its
  // power nothing, and of a program that worked on the folder alone an id below zero.
  const file = readPostmasterFile(folder);
  const isStale = file !== undefined && identifyProcess(file.pid) === undefined;
  if (process.platform === "linux" || isStale) {
    rmSync(join(folder, "postmaster.pid"), { force: true });
  }
}

/** The server that runs on a cluster now; undefined for none. */
export function findServer(folder: string): ProcessIdentity | undefined {
  const file = readPostmasterFile(folder);
  const identity = file === undefined ? undefined : identifyProcess(file.pid);
  return identity !== undefined && isServerOf(identity.pid, folder) ? identity : undefined;
}

/**
 * Ends a server: fast shutdown, then SIGKILL after 3.5 s; its work is safe in the write-ahead log
 * either way. What it has made is killed with it: one of these that hangs would keep the memory that the
 * next server is refused for, and the output that this process waits for.
 * @throws SURVIVOR_STUCK
 */
export async function endServer(identity: ProcessIdentity, signal: AbortSignal): Promise<void> {
  signalProcess(identity, "SIGINT");
  const left = await stillRunning([identity], STOP_GRACE_MS, signal);
  if (left.length > 0) await kill([identity, ...childrenOf(identity.pid)], signal);
}

/**
 * Kills a server with all that it has made, before anything of it does more: where its folder is another
 * kit's by now, an orderly end would write into it.
 */
export function killServer(identity: ProcessIdentity): void {
  for (const one of [identity, ...childrenOf(identity.pid)]) signalProcess(one, "SIGKILL");
}

async function kill(processes: readonly ProcessIdentity[], signal: AbortSignal): Promise<void> {
  for (const one of processes) signalProcess(one, "SIGKILL");
  const [stuck] = await stillRunning(processes, KILL_GRACE_MS, signal);
  if (stuck === undefined) return;
  throw new EmbeddedPostgresError(
    "SURVIVOR_STUCK",
    `a PostgreSQL server of this home (process ${stuck.pid}) cannot be ended`,
    { details: { pid: stuck.pid } },
  );
}

/** Waits until all of them are gone. @returns those that are not after `graceMs` */
async function stillRunning(
  processes: readonly ProcessIdentity[],
  graceMs: number,
  signal: AbortSignal,
): Promise<readonly ProcessIdentity[]> {
  const deadlineMs = performance.now() + graceMs;
  let left = processes.filter(isRunning);
  while (left.length > 0 && performance.now() <= deadlineMs) {
    await sleep(POLL_MS, { signal });
    left = left.filter(isRunning);
  }
  return left;
}

/** True for any process of a server of this folder: all of them work in it. */
function isPartOf(pid: number, folder: string): boolean {
  try {
    // A shell may stand in the folder, too. Of a program that was replaced since, the system says so.
    const isServer = /\/postgres( \(deleted\))?$/.test(readlinkSync(`/proc/${pid}/exe`));
    return isServer && readlinkSync(`/proc/${pid}/cwd`) === folder;
  } catch {
    return false; // Gone, or another user's.
  }
}

/** True when the process is the server of this folder, by its arguments or working folder. */
function isServerOf(pid: number, folder: string): boolean {
  try {
    const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return args.includes(folder) || readlinkSync(`/proc/${pid}/cwd`) === folder;
  } catch {
    return false;
  }
}
