/** How many files a process may have open: what the system allows it, told by the system. */
import { readFileSync } from "node:fs";

/** Where the system does not tell: the lowest limit that is usual anywhere. */
const USUAL_LIMIT = 1_024;

/**
 * Files that connections leave to a process: threads, logs, snapshots, connections to databases and other
 * parts, the files that are written anew, and who is told that there is no room.
 */
export const RESERVED_FILES = 128;

/** Files, sockets included, that this process may have open at once. */
export function openFileLimit(): number {
  try {
    const limits = readFileSync("/proc/self/limits", "latin1");
    const soft = /^Max open files +([0-9]+|unlimited)/m.exec(limits)?.[1];
    if (soft === "unlimited") return Number.MAX_SAFE_INTEGER;
    return soft === undefined ? USUAL_LIMIT : Number(soft);
  } catch {
    // Only Linux has the file; Node takes what it can get everywhere.
    return USUAL_LIMIT;
  }
}
