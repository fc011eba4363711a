/**
 * Log of one child process: appended, turned over at a bound, never a reason to stop. The kit
 * reads the child's output through a pipe, so that a full disk costs log lines and not the child.
 */
import { renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { appendLog } from "../home/append-log.js";

/** Size at which a log is turned over: large enough for a day of info lines. */
const LOG_LIMIT_BYTES = 16 * 1024 * 1024;

/** Turned-over files kept beside the current one: with it at most 64 MiB for each process. */
const KEPT_LOGS = 3;

/** Lines kept in memory, for when the process dies: a line for every setting it could refuse. */
export const TAIL_LINES = 200;

/** A line without an end is cut here, so that a broken child cannot fill the memory. */
const MAX_LINE_BYTES = 64 * 1024;

/** Receives the output of a child. */
export interface LogFile {
  write(chunk: Buffer): void;
  /** The last lines written since `begin`, oldest first, at most `TAIL_LINES`. */
  tail(): readonly string[];
  /** Another life of the child: what former ones wrote is no reason for its end. */
  begin(): void;
}

/** Opens the log `<folder>/<name>.log` for appending. */
export function createLogFile(folder: string, name: string): LogFile {
  const path = join(folder, `${name}.log`);
  let sizeBytes = sizeOf(path);
  let rest = "";
  const lines: string[] = [];
  return {
    write(chunk) {
      const parts = (rest + chunk.toString("utf8")).split("\n");
      rest = (parts.pop() ?? "").slice(-MAX_LINE_BYTES);
      lines.push(...parts.filter((line) => line !== ""));
      lines.splice(0, Math.max(0, lines.length - TAIL_LINES));
      try {
        if (sizeBytes + chunk.length > LOG_LIMIT_BYTES && sizeBytes > 0) {
          turnOver(path);
          sizeBytes = 0;
        }
        const isNew = appendLog(path, chunk);
        sizeBytes = (isNew ? 0 : sizeBytes) + chunk.length;
      } catch {
        // A full disk costs log lines: the child must not suffer from its log.
      }
    },
    begin() {
      lines.length = 0;
      rest = "";
    },
    tail: () => (rest === "" ? [...lines] : [...lines, rest].slice(-TAIL_LINES)),
  };
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0; // Not there yet.
  }
}

function turnOver(path: string): void {
  for (let index = KEPT_LOGS; index >= 1; index--) {
    const from = index === 1 ? path : `${path}.${index - 1}`;
    try {
      renameSync(from, `${path}.${index}`);
    } catch {
      // That generation does not exist yet.
    }
  }
}
