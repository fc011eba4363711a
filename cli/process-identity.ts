/** A process as files of the home name it: pid, start time and boot, so that no later one is meant. */
import { readFileSync } from "node:fs";
import { identifyProcess } from "../runtime/process-identity.js";

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
