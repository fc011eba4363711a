/** Where a command's answer goes: it has to arrive there, unless its reader went away. */
import type { Writable } from "node:stream";
import { CliError, fileCause, systemCode } from "./errors.js";

/** What a stream says whose reader is gone (`causeway ... | head`): that ends the output alone. */
const READER_GONE: readonly string[] = ["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED"];

/** The standard output of one command. */
export interface StandardOutput {
  readonly print: (line: string) => void;
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
