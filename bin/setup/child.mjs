/** Runs a helper program (npm, the compiler) that never outlives the command that needs it. */
import { spawn } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { isAlive, startTicks } from "./lock.mjs";
import { SetupError } from "./setup-error.mjs";

/** npm answers SIGTERM with a rollback of minutes; all has to be gone within 10 s. */
const GRACE_MS = 3_000;

/** Signals that end a command, with the exit codes that shells count for them. */
export const SIGNAL_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/**
 * Runs a program in a process group of its own and resolves with its exit code. A signal for this
 * process ends the whole group, by SIGKILL after a grace, and then this process. A group that
 * survived a killed command is named in the record and ended first: two would spoil one folder.
 * Call it with the clone's lock held.
 * @param {{
 *   what: string, command: string, args: string[], cwd: string, recordPath: string,
 *   timeoutMs?: number, onOutput: (text: string) => void,
 * }} run
 * @returns {Promise<number>}
 * @throws {SetupError} where the program was ended: it says nothing of what it worked on; and the error
 * of a spawn that failed
 */
export async function runChild(run) {
  endFormer(run.recordPath);
  const isWindows = process.platform === "win32";
  const child = spawn(run.command, run.args, {
    cwd: run.cwd,
    stdio: ["ignore", "pipe", "pipe"],
    detached: !isWindows,
    shell: isWindows,
    timeout: run.timeoutMs,
  });
  const signalGroup = (signal) => {
    if (isWindows) child.kill(signal);
    else if (child.pid !== undefined) killGroup(child.pid, signal);
  };
  // Also after a fault nobody caught, such as a terminal that went away.
  const onExit = () => {
    signalGroup("SIGKILL");
    rmSync(run.recordPath, { force: true });
  };
  process.once("exit", onExit);
  let isEnding = false;
  const handlers = Object.entries(SIGNAL_CODES).map(([name, code]) => {
    const onSignal = () => {
      // Beneath npm each Ctrl-C comes twice. Without a listener the second would end this process alone.
      if (isEnding) return;
      isEnding = true;
      signalGroup(name);
      setTimeout(() => process.exit(code), GRACE_MS);
      child.once("exit", () => process.exit(code));
    };
    process.on(name, onSignal);
    return [name, onSignal];
  });
  child.stdout.on("data", (chunk) => run.onOutput(String(chunk)));
  child.stderr.on("data", (chunk) => run.onOutput(String(chunk)));
  try {
    if (child.pid !== undefined) {
      const record = { pid: child.pid, startTicks: startTicks(child.pid) };
      writeFileSync(run.recordPath, JSON.stringify(record));
    }
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => {
        if (code === null) reject(endedError(run, child.killed, signal));
        else resolve(code);
      });
    });
  } catch (error) {
    signalGroup("SIGKILL"); // A record that cannot be written must not leave the program behind.
    throw error;
  } finally {
    for (const [name, onSignal] of handlers) process.removeListener(name, onSignal);
    process.removeListener("exit", onExit);
    rmSync(run.recordPath, { force: true });
  }
}

function endedError({ what, timeoutMs }, isOverdue, signal) {
  return new SetupError(
    isOverdue
      ? `${what} did not come to its end in ${timeoutMs / 1_000} s: try again when the machine has less to do`
      : `${what} was ended by ${signal}: the system may have had too little memory`,
  );
}

/** Ends the group of a command that was killed, if its program still is the recorded one. */
function endFormer(recordPath) {
  let record;
  try {
    record = JSON.parse(readFileSync(recordPath, "utf8"));
  } catch {
    return; // No record: the last command ended in order.
  }
  const { pid } = record;
  // Where the system tells no start times (no /proc) the id may be anybody's by now.
  const isKnown = Number.isSafeInteger(pid) && pid > 1 && record.startTicks !== undefined;
  if (isKnown && isAlive(pid) && startTicks(pid) === record.startTicks) killGroup(pid, "SIGKILL");
  rmSync(recordPath, { force: true });
}

function killGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // Nobody of the group is left.
  }
}
