/** A server that outlived a killed kit: it is recognised by its data folder and stopped. */
import { readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  type ProcessIdentity,
  identifyProcess,
  isRunning,
  signalProcess,
} from "../../runtime/process/process-identity.js";
import { sleep } from "../../runtime/process/task.js";
import { EmbeddedPostgresError } from "./errors.js";

/** Time for an orderly end (fast shutdown with a checkpoint) before SIGKILL. */
const STOP_GRACE_MS = 5_000;

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
 * Stops a server that still runs on this folder and removes a stale `postmaster.pid`, whose process
 * id may by now belong to a stranger. The caller holds the home's lock and has claimed a folder that
 * the home links to, so no other kit uses it.
 * @throws SURVIVOR_STUCK when it cannot be ended, or the signal's reason
 */
export async function stopSurvivor(folder: string, signal: AbortSignal): Promise<void> {
  const file = readPostmasterFile(folder);
  if (file === undefined) {
    return;
  }
  const server = findServer(folder);
  if (server !== undefined) {
    await endServer(server, signal);
  }
  if (process.platform === "linux" || identifyProcess(file.pid) === undefined) {
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
 * Ends a server: fast shutdown, then SIGKILL after 5 s; its work is safe in the write-ahead log
 * either way.
 * @throws SURVIVOR_STUCK
 */
export async function endServer(identity: ProcessIdentity, signal: AbortSignal): Promise<void> {
  signalProcess(identity, "SIGINT");
  if (await isGoneWithin(identity, STOP_GRACE_MS, signal)) {
    return;
  }
  signalProcess(identity, "SIGKILL");
  if (!(await isGoneWithin(identity, KILL_GRACE_MS, signal))) {
    throw new EmbeddedPostgresError(
      "SURVIVOR_STUCK",
      `a PostgreSQL server of this home (process ${identity.pid}) cannot be ended`,
      { details: { pid: identity.pid } },
    );
  }
}

async function isGoneWithin(
  identity: ProcessIdentity,
  graceMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const deadlineMs = performance.now() + graceMs;
  while (isRunning(identity)) {
    if (performance.now() > deadlineMs) {
      return false;
    }
    await sleep(POLL_MS, { signal });
  }
  return true;
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
