/**
 * The time that a thread works, as opposed to the time that passes: on a machine with more to do
 * than processors a thread stands in a queue, and nobody who gave it work shall pay for that.
 */
import { openSync, readSync } from "node:fs";

/** What one thread is measured by; only differences have a meaning. */
export interface ThreadReadings {
  /** Milliseconds of a clock that never goes back. */
  readonly passedMs: () => number;
  /** Milliseconds of them in which this thread did not work though it could have. */
  readonly waitedMs: () => number;
}

/** Measures stretches of work of one thread. */
export interface ThreadClock {
  /** Begins to measure; the function that it returns says how many milliseconds were worked. */
  startWatch(): () => number;
}

/** Below this nobody took the processor away. */
const UNDISTURBED_MS = 0.5;

/** Longer than three numbers of 64 bits. */
const MAX_SCHEDSTAT_BYTES = 128;

/** A clock by such readings. A stretch of work is between none and all of the time that passed. */
export function threadClock({ passedMs, waitedMs }: ThreadReadings): ThreadClock {
  return {
    startWatch() {
      const startMs = passedMs();
      const waitedBeforeMs = waitedMs();
      return () => {
        const totalMs = passedMs() - startMs;
        if (totalMs < UNDISTURBED_MS) return totalMs;
        return Math.max(0, Math.min(totalMs, totalMs - (waitedMs() - waitedBeforeMs)));
      };
    },
  };
}

/**
 * Begins to measure what this thread works, without what it waits for a processor, and without
 * what other threads of this process do. The stretch must be synchronous: whatever else the thread
 * does in between counts too.
 *
 * Source of the readings, the first that there is: `process.threadCpuUsage` (Node 22.15 and 23.9);
 * `/proc/thread-self/schedstat` (Linux), whose second number is the time in the run queue and,
 * other than the time on a processor beside it, exact and not rounded to the kernel's ticks;
 * `process.cpuUsage`, which counts all threads and is too much where others work meanwhile.
 */
export function startWatch(): () => number {
  // Not when the file is loaded: the thread that measures is the one that the system shall show.
  ownClock ??= threadClock({ passedMs: () => performance.now(), waitedMs: waitedMsReader() });
  return ownClock.startWatch();
}

/** Milliseconds that `schedstat` says a thread has waited; undefined where it says nothing. */
export function waitedMsOf(schedstat: string): number | undefined {
  const [ranNs, waitedNs] = schedstat.split(" ", 2).map(Number);
  // All zeros: a kernel that shows the file and does not count.
  if (!Number.isSafeInteger(ranNs) || ranNs === 0 || waitedNs === undefined) return undefined;
  return Number.isSafeInteger(waitedNs) ? waitedNs / 1e6 : undefined;
}

/** Of this thread: each has modules of its own. */
let ownClock: ThreadClock | undefined;

function waitedMsReader(): () => number {
  const { threadCpuUsage } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };
  if (threadCpuUsage !== undefined) return () => performance.now() - usedMs(threadCpuUsage());
  return schedstatReader() ?? (() => performance.now() - usedMs(process.cpuUsage()));
}

function usedMs({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1_000;
}

/** Kept open: a read of it costs two microseconds. */
function schedstatReader(): (() => number) | undefined {
  const buffer = Buffer.alloc(MAX_SCHEDSTAT_BYTES);
  try {
    const file = openSync("/proc/thread-self/schedstat", "r");
    const read = () =>
      waitedMsOf(buffer.toString("latin1", 0, readSync(file, buffer, 0, buffer.length, 0)));
    if (read() === undefined) return undefined;
    let lastMs = 0;
    return () => (lastMs = read() ?? lastMs);
  } catch {
    return undefined; // Another system.
  }
}
