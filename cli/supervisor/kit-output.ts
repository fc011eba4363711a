/**
 * What `npm start` says. Its reader may pause for as long as it likes (Ctrl-S, screen's copy mode, a
 * pager): that holds up the words, not the thread that looks after all processes. What its parts wrote is
 * shown, and no terminal obeys it.
 */
import { escapeUnshowable } from "../../chain/evm/foreign-text.js";
import type { StatusOutput } from "./status-line.js";

/** Longest that a stop waits for a reader; all processes are gone by then. */
const STOP_PATIENCE_MS = 500;

/** The ways out of the kit's process. */
export interface KitOutput {
  readonly print: (line: string) => void;
  readonly printError: (line: string) => void;
  /** Where the live line goes. */
  readonly output: StatusOutput;
  /**
   * Returns when the readers have everything or went away. A stop does not wait for one that pauses.
   * @param stopping fires, or has fired, when the process has to end
   */
  readonly end: (stopping: AbortSignal) => Promise<void>;
}

/** Standard output or error as a process has it. */
export type StandardStream = NodeJS.WriteStream & { readonly fd: number };

/** A terminal as Node keeps it, as far as it is asked here. */
interface Terminal {
  readonly fd?: number;
  setBlocking?(isBlocking: boolean): number;
}

/** Takes both streams over: a reader that goes away (`npm start | head`) is no reason to stop the kit. */
export function createKitOutput(stdout: StandardStream, stderr: StandardStream): KitOutput {
  for (const stream of [stdout, stderr]) {
    stream.on("error", () => undefined);
    letPause(stream);
  }
  return {
    print: (line) => void stdout.write(`${escapeUnshowable(line, "many")}\n`),
    printError: (line) => void stderr.write(`${escapeUnshowable(line, "many")}\n`),
    output: {
      isTty: stdout.isTTY,
      get columns() {
        return stdout.columns;
      },
      get isBehind() {
        return stdout.writableLength > 0;
      },
      write: (text) => void stdout.write(text),
    },
    async end(stopping) {
      await new Promise<void>((resolve) => {
        void Promise.all([stdout, stderr].map(allTaken)).then(() => resolve());
        const giveUp = (): void => void setTimeout(resolve, STOP_PATIENCE_MS);
        if (stopping.aborted) giveUp();
        else stopping.addEventListener("abort", giveUp, { once: true });
      });
    },
  };
}

/**
 * Node makes terminals blocking: one write to a paused one would stop everything. Not where Node shares
 * the terminal with others (it could not open it anew): they would be told to try again, and break.
 */
function letPause(stream: StandardStream): void {
  if (!stream.isTTY) return;
  const handle: Terminal | undefined = Reflect.get(stream, "_handle");
  if (handle?.fd !== stream.fd) handle?.setBlocking?.(false);
}

/** Written in order: behind this nothing is on its way any more. */
function allTaken(stream: StandardStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write("", () => resolve());
  });
}
