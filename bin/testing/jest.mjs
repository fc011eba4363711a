/** Jest as a child process: how `npm test`, the faults and the soak run it. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SIGNAL_CODES } from "../setup/child.mjs";
import { environmentOfTests } from "./environment.mjs";

/** Node 22 and later decide by other measures, and refuse the flag. */
const COUNTS_BYTES = Number.parseInt(process.versions.node, 10) < 22;

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Of jest and its workers. There are more workers than cores: threads that collect garbage beside each
 * would only take turns with the others, and a young generation of 32 MiB is collected less often. A function is
 * compiled for speed behind nine times as much work as usual: most of a test file runs a few times and ends,
 * and compiling it so took some 15 % of the time of unit tests.
 */
const NODE_FLAGS = [
  "--experimental-vm-modules",
  "--no-warnings",
  "--single-threaded-gc",
  "--max-semi-space-size=32",
  ...(COUNTS_BYTES ? ["--interrupt-budget=600000"] : []),
];

/** What this process is told to end by, jest is told as well; on a terminal Ctrl-C reaches both. */
const FORWARDED = Object.keys(SIGNAL_CODES);

/** The run was told to end by a signal: nothing that would come behind it is begun. */
class Stopped extends Error {
  constructor(signal) {
    super(`ended by ${signal}`);
    this.exitCode = SIGNAL_CODES[signal];
  }
}

/** Does work that runs jest. Where a signal ended that, this process ends with the signal's exit code. */
export async function untilStopped(work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    process.exit(error.exitCode);
  }
}

/**
 * Runs jest to its end, within `untilStopped`.
 * @param words its own flags and patterns
 * @param options.environment variables beside those of this process that tests see
 * @param options.isShown whether what it prints on standard output is shown as it comes
 * @returns its exit code; 1 where it could not be started or was killed
 * @throws what `untilStopped` ends by where a signal came; jest has ended by then
 */
export async function runJest(words, { environment, isShown = false }) {
  let child;
  let stoppedBy;
  const forward = (signal) => {
    stoppedBy = signal;
    child?.kill(signal);
  };
  // Before it is started: a signal right behind that would end this process alone.
  for (const signal of FORWARDED) process.on(signal, forward);
  try {
    child = spawn(
      process.execPath,
      [...NODE_FLAGS, join(ROOT, "node_modules", "jest", "bin", "jest.js"), ...words],
      {
        cwd: ROOT,
        stdio: ["inherit", isShown ? "inherit" : "ignore", "inherit"],
        env: { ...environmentOfTests(), ...environment },
      },
    );
    const code = await new Promise((resolve) => {
      child.once("error", () => resolve(1));
      child.once("close", (status) => resolve(status ?? 1));
    });
    if (stoppedBy !== undefined) throw new Stopped(stoppedBy);
    return code;
  } finally {
    for (const signal of FORWARDED) process.removeListener(signal, forward);
  }
}
