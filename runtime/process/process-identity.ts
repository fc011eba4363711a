/**
 * Which process a process id means: ids are reused, ids plus start times are not. The one owner of
 * that; `bin/setup/lock.mjs` has a few lines of its own, because it runs before anything is built.
 */
import { readdirSync, readFileSync } from "node:fs";

/** A process, told apart from a later one with the same id. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in clock ticks since boot, as in /proc; undefined where there is no /proc. */
  readonly startTicks: string | undefined;
}

/** The identity of a running process (zombies count as ended); undefined when there is none. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  if (stat !== undefined) {
    return stat.state === "Z" || stat.state === "X"
      ? undefined
      : { pid, startTicks: stat.startTicks };
  }
  return process.platform !== "linux" && answersSignal(pid)
    ? { pid, startTicks: undefined }
    : undefined;
}

/** All processes that run; none where there is no /proc. */
export function runningProcesses(): readonly ProcessIdentity[] {
  try {
    return readdirSync("/proc").flatMap((name) => {
      const identity = /^[0-9]+$/.test(name) ? identifyProcess(Number(name)) : undefined;
      return identity === undefined ? [] : [identity];
    });
  } catch {
    return []; // Not Linux.
  }
}

/** The running processes that a process has made itself. */
export function childrenOf(pid: number): readonly ProcessIdentity[] {
  return runningProcesses().filter((child) => readStat(child.pid)?.parentPid === pid);
}

/** True while exactly this process runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  const present = identifyProcess(identity.pid);
  return present !== undefined && present.startTicks === identity.startTicks;
}

/** Sends a signal to exactly this process; false when it is gone or belongs to someone else. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isRunning(identity)) {
    return false;
  }
  try {
    return process.kill(identity.pid, signal);
  } catch {
    // It ended in between (ESRCH) or is not ours (EPERM): either way it was not signalled.
    return false;
  }
}

/** A process as recorded in a file, which may be read after the machine was started again. */
export interface RecordedProcess {
  readonly pid: number;
  /** Boot id and start ticks on Linux; "" on systems that do not tell, where only the pid counts. */
  readonly startedAt: string;
}

/** What to record of a live process; `startedAt` is "" when it is gone already. */
export function recordProcess(pid: number): RecordedProcess {
  const ticks = identifyProcess(pid)?.startTicks;
  return { pid, startedAt: ticks === undefined ? "" : `${bootId()}:${ticks}` };
}

/** Whether exactly this process still runs: a later one with the same pid is not it. */
export function isStillRunning(recorded: RecordedProcess): boolean {
  if (identifyProcess(recorded.pid) === undefined) return false;
  return recorded.startedAt === "" || recordProcess(recorded.pid).startedAt === recorded.startedAt;
}

/**
 * Whether a process was recorded on another machine, or on this one before it was started anew: which of
 * both, ids do not tell. False on systems that do not tell their boot.
 */
export function isOfAnotherBoot({ startedAt }: RecordedProcess): boolean {
  const own = bootId();
  return startedAt !== "" && own !== "" && startedAt.slice(0, startedAt.lastIndexOf(":")) !== own;
}

/** Untrusted JSON value to a recorded process; undefined if it is none. */
export function parseRecordedProcess(value: unknown): RecordedProcess | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (!("pid" in value) || !("startedAt" in value)) return undefined;
  const { pid, startedAt } = value;
  if (typeof pid !== "number" || !Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return typeof startedAt === "string" ? { pid, startedAt } : undefined;
}

function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return ""; // Not Linux, or hidden: start ticks alone have to do.
  }
}

/** What /proc/<pid>/stat says of a process. */
interface ProcessStat {
  readonly state: string;
  readonly parentPid: number;
  readonly startTicks: string;
}

/** The name in it may contain spaces and brackets. */
function readStat(pid: number): ProcessStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? "", parentPid: Number(fields[1]), startTicks: fields[19] ?? "" };
  } catch {
    return undefined;
  }
}

function answersSignal(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
