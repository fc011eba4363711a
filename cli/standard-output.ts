/** Where a command's answer goes: it has to arrive there, unless its reader went away. */
import type { Writable } from "node:stream";
import { whenAborted } from "../runtime/process/task.js";
import { CliError, fileCause, systemCode } from "./errors.js";

/** What a stream says whose reader is gone (`causeway ... | head`): that ends the output alone. */
const READER_GONE: readonly string[] = ["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED"];

/** The standard output of one command. */
export interface StandardOutput {
  readonly print: (line: string) => void;
  /** Prints a line by its parts, the next one when those before are written. Throws the signal's reason. */
  readonly printParts: (parts: Iterable<string>, signal: AbortSignal) => Promise<void>;
  /**
   * Returns when everything is written, or its reader went away.
   * @throws OUTPUT_LOST where it could not be written: an answer that nobody got is no success
   */
  readonly end: () => Promise<void>;
}

/** Watches a stream from now on, so that a fault of it does not end the process. */
export function createStandardOutput(stream: Writable): StandardOutput {
  let fault: unknown;
  const note = (error: unknown): void => {
    fault ??= error;
  };
  stream.on("error", note);
  return {
    print: (line) => void stream.write(`${line}\n`),
    async printParts(parts, signal) {
      for (const part of parts) {
        // A reader that went away takes nothing more; what that means `end` says.
        if (fault !== undefined || stream.destroyed) return;
        await written(stream, part, signal);
      }
      stream.write("\n");
    },
    async end() {
      await new Promise<void>((resolve) => {
        // Written in order: behind this nothing is on its way any more.
        stream.write("", (error) => {
          if (error) note(error);
          resolve();
        });
      });
      if (fault === undefined || READER_GONE.includes(systemCode(fault))) return;
      throw new CliError(
        "OUTPUT_LOST",
        `Cannot write the output: ${fileCause(fault)}; what the command did stands.`,
        {
          cause: fault,
        },
      );
    },
  };
}

/** Returns when the stream has written a text, or cannot: its fault is told beside. */
async function written(stream: Writable, text: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const unfollow = whenAborted(signal, () => reject(signal.reason));
    stream.write(text, () => {
      unfollow();
      resolve();
    });
  });
}
