/**
 * Another program in the place of this process: it has this one's streams and environment, gets the signals
 * that this one gets, ends with it, and its exit code is this one's. (Node 20 cannot replace its image.)
 */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import type { Environment } from "../config/config.js";
import { startGuardian } from "./guardian.js";
import type { Logger } from "./logger.js";

/** What goes on. */
export interface SuccessorProgram {
  /** Absolute path of the script that Node runs, with the flags for Node that this process has. */
  readonly script: string;
  readonly args: readonly string[];
  readonly env: Environment;
  readonly log: Logger;
}

/** What a service manager or a terminal sends to who is to end. */
const PASSED_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** What shells add to a signal's number. */
const SIGNAL_BASE = 128;

/**
 * Starts the program and takes this process' signals for it: whoever heard them before hears them no more. It
 * has a process group of its own, so that a Ctrl-C in the terminal comes to it once, from here; where this
 * process is killed it is ended. It is not started again, however it ends.
 * @returns its exit code, 128 + the signal's number where a signal ended it
 * @throws the system's fault where it cannot be started
 */
export function runSuccessor({ script, args, env, log }: SuccessorProgram): Promise<number> {
  const guardian = startGuardian({ log });
  return new Promise<number>((resolve, reject) => {
    const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
      env,
      stdio: "inherit",
      detached: true,
    });
    const { pid } = child;
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      if (pid !== undefined) guardian.forget(pid);
      resolve(code ?? SIGNAL_BASE + (signal === null ? 0 : constants.signals[signal]));
    });
    if (pid === undefined) return;
    guardian.watch({ pid });
    for (const signal of PASSED_SIGNALS) takeSignal(signal, () => child.kill(signal));
  }).finally(() => guardian.close());
}

/** There is always somebody who listens: without one the system ends the process. */
function takeSignal(signal: NodeJS.Signals, pass: () => void): void {
  const before = process.listeners(signal);
  process.on(signal, pass);
  for (const listener of before) process.off(signal, listener);
}
