/** Children die with their supervisor even when it is killed: a guardian sees to it. */
import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
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

/** How long a lost guardian's place stays empty: at first, doubling, and at most. */
export interface RetryDelays {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** One that lives on is back at once; one that cannot live costs a process a minute. */
const USUAL_DELAYS: RetryDelays = { firstMs: 100, maxMs: 60_000 };

/** One that has lived for so long was well: its end is not counted to those before. */
const HEALTHY_AFTER_MS = 60_000;

const SCRIPT_PATH = fileURLToPath(new URL("./guardian-main.mjs", import.meta.url));

/**
 * Starts a guardian. It is detached (a Ctrl-C in the terminal does not reach it), does not keep
 * this process alive, and is started again with the same list if it is killed. Where it cannot be started,
 * for want of memory or of room for processes or files, that is tried until it can: never throws.
 */
export function startGuardian(options: {
  readonly log: Logger;
  readonly retryDelays?: RetryDelays;
}): Guardian {
  return new GuardianProcess(options.log, options.retryDelays ?? USUAL_DELAYS);
}

/** A child and how it is asked to end. */
interface Watched {
  readonly identity: ProcessIdentity;
  readonly stopSignal: string;
}

/** The guardian's word for a child. */
const toWatch = ({ identity, stopSignal }: Watched): string =>
  `watch ${identity.pid} ${stopSignal} ${identity.startTicks ?? "-"}`;

/** The supervisor's end of the pipe. */
class GuardianProcess implements Guardian {
  readonly #log: Logger;
  readonly #delays: RetryDelays;
  readonly #children = new Map<number, Watched>();
  /** Undefined while there is no guardian. */
  #pipe: Writable | undefined;
  #retry: NodeJS.Timeout | undefined;
  /** Ends and failed starts behind each other. */
  #losses = 0;
  #isClosed = false;

  constructor(log: Logger, delays: RetryDelays) {
    this.#log = log;
    this.#delays = delays;
    this.#start();
  }

  watch(child: GuardedChild): void {
    const identity = identifyProcess(child.pid);
    if (identity === undefined) {
      return;
    }
    const entry = { identity, stopSignal: child.stopSignal ?? "SIGTERM" };
    this.#children.set(child.pid, entry);
    this.#write(`${toWatch(entry)}\n`);
  }

  forget(pid: number): void {
    this.#children.delete(pid);
    this.#write(`forget ${pid}\n`);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#write("quit\n");
    this.#pipe?.end();
  }

  #start(): void {
    const startedMs = performance.now();
    let isLost = false;
    const lose = (error?: unknown): void => {
      // Node tells the end of what it could not start in one way or in two.
      if (isLost) return;
      isLost = true;
      this.#onLost(performance.now() - startedMs, error);
    };
    try {
      const child = this.#spawn();
      child.on("error", lose);
      child.on("exit", () => lose());
      // Without one, as where no more files can be opened, there is an "error" to come.
      this.#pipe = child.stdin ?? undefined;
    } catch (error) {
      lose(error);
      return;
    }
  }

  /**
   * Its first words name the children: one that heard of them only later would know none where this process
   * is killed in between.
   * @throws what the system has against it, where Node does not tell it by an "error"
   */
  #spawn(): ChildProcess {
    const child = spawn(
      process.execPath,
      [SCRIPT_PATH, ...[...this.#children.values()].map(toWatch)],
      {
        detached: true,
        cwd: "/",
        env: {},
        stdio: ["pipe", "ignore", "ignore"],
      },
    );
    child.unref();
    const { stdin } = child;
    // The pipe must not keep this process alive either; its close is the whole message.
    if (stdin instanceof Socket) stdin.unref();
    stdin?.on("error", () => undefined);
    return child;
  }

  #onLost(livedMs: number, error: unknown): void {
    this.#pipe = undefined;
    if (this.#isClosed) {
      return;
    }
    this.#losses = livedMs > HEALTHY_AFTER_MS ? 1 : this.#losses + 1;
    const { firstMs, maxMs } = this.#delays;
    const delayMs = Math.min(firstMs * 2 ** (this.#losses - 1), maxMs);
    const words = "guardian is gone and will be started again; without it children outlive a kill";
    this.#log.warn({ ...(error === undefined ? {} : { err: error }), delayMs }, words);
    this.#retry = setTimeout(() => this.#start(), delayMs);
    this.#retry.unref();
  }

  #write(line: string): void {
    if (this.#pipe?.writable === true) {
      this.#pipe.write(line);
    }
  }
}
