/** Children die with their supervisor even when it is killed: a guardian sees to it. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Logger } from "./logger.js";
import { type ProcessIdentity, identifyProcess } from "./process-identity.js";

/** A child that must not outlive the supervisor. */
export interface GuardedChild {
  readonly pid: number;
  /** Asks the child to end; SIGKILL follows after 3.5 s. Default SIGTERM. */
  readonly stopSignal?: NodeJS.Signals;
}

/** A small process of its own that ends the named children when this process is gone. */
export interface Guardian {
  /** Names a running child; call it right after the child was spawned. */
  watch(child: GuardedChild): void;
  /** Takes a child off the list; call it when the child has ended. */
  forget(pid: number): void;
  /** Ends the guardian without touching any child; for an orderly stop. */
  close(): void;
}

/** A guardian that dies again and again is not worth an endless loop of restarts. */
const MAX_RESTARTS = 5;

const SCRIPT_PATH = fileURLToPath(new URL("./guardian-main.mjs", import.meta.url));

/**
 * Starts a guardian. It is detached (a Ctrl-C in the terminal does not reach it), does not keep
 * this process alive, and is started again with the same list if it is killed.
 */
export function startGuardian(options: { readonly log: Logger }): Guardian {
  return new GuardianProcess(options.log);
}

/** The supervisor's end of the pipe. */
class GuardianProcess implements Guardian {
  readonly #log: Logger;
  readonly #children = new Map<number, { identity: ProcessIdentity; stopSignal: string }>();
  #process: ChildProcess;
  #restarts = 0;
  #isClosed = false;

  constructor(log: Logger) {
    this.#log = log;
    this.#process = this.#spawn();
  }

  watch(child: GuardedChild): void {
    const identity = identifyProcess(child.pid);
    if (identity === undefined) {
      return;
    }
    const entry = { identity, stopSignal: child.stopSignal ?? "SIGTERM" };
    this.#children.set(child.pid, entry);
    this.#tell(entry);
  }

  forget(pid: number): void {
    this.#children.delete(pid);
    this.#write(`forget ${pid}\n`);
  }

  close(): void {
    this.#isClosed = true;
    this.#write("quit\n");
    this.#process.stdin?.end();
  }

  #spawn(): ChildProcess {
    const child = spawn(process.execPath, [SCRIPT_PATH], {
      detached: true,
      cwd: "/",
      env: {},
      stdio: ["pipe", "ignore", "ignore"],
    });
    child.unref();
    // The pipe must not keep this process alive either; its close is the whole message.
    if (child.stdin !== null && "unref" in child.stdin && typeof child.stdin.unref === "function") {
      child.stdin.unref();
    }
    child.stdin?.on("error", () => undefined);
    child.on("error", (error) => this.#log.warn({ err: error }, "guardian failed"));
    child.on("exit", () => this.#onExit());
    return child;
  }

  #onExit(): void {
    if (this.#isClosed) {
      return;
    }
    this.#restarts += 1;
    if (this.#restarts > MAX_RESTARTS) {
      this.#log.error("guardian died too often; children may outlive a killed supervisor");
      return;
    }
    this.#log.warn("guardian died and is started again");
    this.#process = this.#spawn();
    for (const entry of this.#children.values()) {
      this.#tell(entry);
    }
  }

  #tell(entry: { identity: ProcessIdentity; stopSignal: string }): void {
    const { pid, startTicks } = entry.identity;
    this.#write(`watch ${pid} ${entry.stopSignal} ${startTicks ?? "-"}\n`);
  }

  #write(line: string): void {
    if (this.#process.stdin?.writable === true) {
      this.#process.stdin.write(line);
    }
  }
}
