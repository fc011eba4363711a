/**
 * One child of the kit: started, watched, started again when it dies, stopped with a deadline.
 * Children run in process groups of their own, so that Ctrl-C reaches the kit alone and the kit
 * stops them in order; they end by themselves when the channel to the kit closes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { errorMessage } from "../../chain/errors.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Environment } from "../../runtime/config/config.js";
import { sleep } from "../../runtime/process/task.js";
import { CliError } from "../errors.js";
import type { LogFile } from "./log-file.js";

/** Deaths in a row after which the kit gives up. */
export const MAX_QUICK_DEATHS = 5;

/** A process that served at least this long was healthy: its death starts a new count. */
export const HEALTHY_AFTER_MS = 10_000;

/**
 * Lives in which a process that had served already finds its port taken, beside those deaths: an
 * outgoing connection of any program may have that very port for a while, where ports lie in the
 * system's range for such connections. With the usual delays a minute and a half.
 */
export const MAX_PORT_WAITS = 15;

/** What to run and under which name. */
export interface ProcessSpec {
  readonly name: string;
  /** By which name the program tells of its own end, where several processes run it. */
  readonly program?: string;
  /** Absolute path of the script that Node runs. */
  readonly script: string;
  /** Flags for Node itself. */
  readonly flags?: readonly string[];
  readonly args: readonly string[];
  readonly env: Environment;
  /** Longest time from start to the ready message, or to one that it is busy; undefined: without an end. */
  readonly readyTimeoutMs: number | undefined;
}

/** What a supervised process tells the kit. */
export interface ProcessEvents {
  /** A child came to life; recorded, so that the next start knows its orphans. */
  spawned(name: string, pid: number): void;
  /** A child is gone, whatever the reason. */
  ended(name: string, pid: number): void;
  /** Its start takes long, for this reason; it is not killed for that. */
  busy(name: string, reason: string): void;
  /** It died and will be started again. */
  restarting(name: string, reason: string): void;
  /** It died too often, and is not started again; the kit goes on without it, or has to stop. */
  gaveUp(error: CliError): void;
  /** It has served, ended because its work is done, and is not started again. */
  finished(name: string, reason: string): void;
}

/** Waiting times between deaths and restarts, in milliseconds. */
export interface RestartDelays {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** What a supervised process needs beside its spec. */
export interface ProcessDependencies {
  readonly log: LogFile;
  readonly events: ProcessEvents;
  readonly clock: Clock;
  readonly delays?: RestartDelays;
  /** Why it must not be started now, for the first time or again; undefined where it may. */
  readonly startFault?: () => string | undefined;
}

/** A child under supervision. */
export interface SupervisedProcess {
  readonly name: string;
  /** Times it was started again after a death. */
  readonly restarts: number;
  /** True between the ready message and the end of the present incarnation. */
  readonly ready: boolean;
  /**
   * Starts it and resolves when it is ready for the first time.
   * @throws CHILD_FAILED after too many deaths, or where its work was done before it was ready; the signal's
   * reason when aborted
   */
  start(options: { readonly signal: AbortSignal }): Promise<void>;
  /** Asks it to end, kills it after `graceMs`, with 0 at once, and resolves when it is gone. */
  stop(options: { readonly graceMs: number }): Promise<void>;
}

const DEFAULT_DELAYS: RestartDelays = { firstMs: 250, maxMs: 8_000 };

/** Lines that are shown of a process that did not say why it ended. */
const SHOWN_LINES = 30;

/** Time for the pipes to deliver what a dead child wrote last: its reason is in there. */
const LAST_WORDS_MS = 500;

/** One life of the child, from spawn to the end of its output. */
interface Incarnation {
  /** Undefined where the system could not even begin to start it. */
  readonly child: ChildProcess | undefined;
  /** Resolves with the reason in words when it is gone. */
  readonly ended: Promise<string>;
}

/** Creates the supervision of one child; nothing runs before `start`. */
export function createSupervisedProcess(
  spec: ProcessSpec,
  dependencies: ProcessDependencies,
): SupervisedProcess {
  return new Supervision(spec, dependencies);
}

/** Whether a child says that something is so: `{"ready":true}`. */
function says(
  message: unknown,
  what: "ready" | "portTaken" | "finished" | "busy",
): message is object {
  return typeof message === "object" && message !== null && Reflect.get(message, what) === true;
}

function spawnOnce(
  spec: ProcessSpec,
  log: LogFile,
  told: {
    readonly onReady: () => void;
    readonly onPortTaken: () => void;
    readonly onFinished: (reason: string) => void;
    readonly onBusy: (reason: string) => void;
  },
): Incarnation {
  let child: ChildProcess;
  try {
    child = spawn(process.execPath, [...(spec.flags ?? []), spec.script, ...spec.args], {
      env: { ...spec.env, CAUSEWAY_SUPERVISED: "1" },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: true,
    });
  } catch (error) {
    // Node tells some faults of the system by an event, and throws others: that there is no memory, for one.
    return { child: undefined, ended: Promise.resolve(notStarted(error)) };
  }
  child.stdout?.on("data", (chunk: Buffer) => log.write(chunk));
  child.stderr?.on("data", (chunk: Buffer) => log.write(chunk));
  child.on("message", (message) => {
    if (says(message, "ready")) told.onReady();
    if (says(message, "portTaken")) told.onPortTaken();
    if (says(message, "finished")) told.onFinished(String(Reflect.get(message, "reason")));
    if (says(message, "busy")) told.onBusy(String(Reflect.get(message, "reason")));
  });
  const ended = new Promise<string>((resolve) => {
    let reason = "it ended";
    const finish = (): void => resolve(reason);
    child.once("error", (error) => {
      // Emitted instead of "exit" where the spawn itself failed; later ones are harmless.
      if (child.pid === undefined) resolve(notStarted(error));
    });
    child.once("exit", (code, signal) => {
      reason = signal === null ? `it ended with code ${String(code)}` : `it was ended by ${signal}`;
      // Grandchildren may hold the pipes open, so "close" is not waited for without a bound.
      setTimeout(finish, LAST_WORDS_MS).unref();
    });
    child.once("close", finish);
  });
  return { child, ended };
}

function notStarted(error: unknown): string {
  return `it could not be started (${errorMessage(error)})`;
}

class Supervision implements SupervisedProcess {
  readonly name: string;
  restarts = 0;
  ready = false;
  private readonly stopping = new AbortController();
  private current: Incarnation | undefined;
  private loop: Promise<void> | undefined;
  private quickDeaths = 0;
  private hasServed = false;
  private isPortTaken = false;
  private portWaits = 0;
  /** Why there is nothing left to do for it. */
  private doneReason: string | undefined;
  private readyAtMs = 0;
  private settleFirstReady: { resolve(): void; reject(error: unknown): void };
  private readonly firstReady: Promise<void>;

  constructor(
    private readonly spec: ProcessSpec,
    private readonly dependencies: ProcessDependencies,
  ) {
    this.name = spec.name;
    this.settleFirstReady = { resolve: () => undefined, reject: () => undefined };
    this.firstReady = new Promise((resolve, reject) => {
      this.settleFirstReady = { resolve, reject };
    });
    // Awaited only by start(); a later fault reaches the kit through the event.
    this.firstReady.catch(() => undefined);
  }

  async start({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    this.loop ??= this.run();
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      this.firstReady.then(resolve, reject).finally(() => {
        signal.removeEventListener("abort", onAbort);
      });
    });
  }

  async stop({ graceMs }: { readonly graceMs: number }): Promise<void> {
    this.stopping.abort(new CliError("CHILD_FAILED", `${this.name} is being stopped.`));
    const incarnation = this.current;
    if (incarnation !== undefined) {
      const { child } = incarnation;
      child?.kill(graceMs === 0 ? "SIGKILL" : "SIGTERM");
      const timer = setTimeout(() => child?.kill("SIGKILL"), graceMs);
      await incarnation.ended;
      clearTimeout(timer);
    }
    await this.loop;
  }

  private async run(): Promise<void> {
    let env = this.spec.env;
    let died: string | undefined;
    while (!this.stopping.signal.aborted) {
      // Asked right before each start: much may have happened in the wait.
      if (this.isRefused(died)) return;
      const reason = await this.live(env);
      died = reason;
      if (this.stopping.signal.aborted) break;
      if (this.doneReason !== undefined) {
        const message = `${this.name} has ended because its work is done: ${this.doneReason}.`;
        this.settleFirstReady.reject(new CliError("CHILD_FAILED", message));
        if (this.hasServed) this.dependencies.events.finished(this.name, this.doneReason);
        return;
      }
      const { clock, events, log, delays = DEFAULT_DELAYS } = this.dependencies;
      const healthy = this.readyAtMs > 0 && clock.monotonicMs() - this.readyAtMs > HEALTHY_AFTER_MS;
      if (healthy) this.quickDeaths = 0;
      const isWaiting = this.isPortTaken && this.hasServed && this.portWaits < MAX_PORT_WAITS;
      if (isWaiting) this.portWaits += 1;
      else if (!healthy) this.quickDeaths += 1;
      if (this.isRefused(reason)) return;
      const words = lastWords(this.spec.program ?? this.name, log.tail());
      if (this.quickDeaths >= MAX_QUICK_DEATHS) {
        this.giveUp(deathReport({ name: this.name, reason, words, tail: log.tail() }));
        return;
      }
      events.restarting(this.name, words === undefined ? reason : `${reason}: ${firstOf(words)}`);
      this.restarts += 1;
      // A failpoint kills once: the next life has to show that it recovers from that point.
      env = { ...this.spec.env, CAUSEWAY_FAILPOINT: undefined };
      const doublings = Math.max(0, this.quickDeaths + this.portWaits - 1);
      const delayMs = Math.min(delays.firstMs * 2 ** doublings, delays.maxMs);
      await sleep(delayMs, { signal: this.stopping.signal }).catch(() => undefined);
    }
    this.settleFirstReady.reject(this.stopping.signal.reason);
  }

  /** Gives it up where it must not be started now. */
  private isRefused(died: string | undefined): boolean {
    const fault = this.dependencies.startFault?.();
    if (fault === undefined) return false;
    this.giveUp(notStartedNow(this.name, died, fault));
    return true;
  }

  private giveUp(error: CliError): void {
    this.settleFirstReady.reject(error);
    this.dependencies.events.gaveUp(error);
  }

  /** One life: resolves with the reason of its end. */
  private async live(env: Environment): Promise<string> {
    const { events, log, clock } = this.dependencies;
    this.readyAtMs = 0;
    this.isPortTaken = false;
    let lateMs: number | undefined;
    const onReady = (): void => {
      this.ready = true;
      this.hasServed = true;
      this.portWaits = 0;
      this.readyAtMs = clock.monotonicMs();
      clearTimeout(timer);
      this.settleFirstReady.resolve();
    };
    const onPortTaken = (): void => {
      this.isPortTaken = true;
    };
    const onFinished = (reason: string): void => {
      this.doneReason = reason;
    };
    const onBusy = (reason: string): void => {
      // Killed in the middle of a migration it would have to begin again, and be killed again.
      clearTimeout(timer);
      events.busy(this.name, reason);
    };
    log.begin();
    const incarnation = spawnOnce({ ...this.spec, env }, log, {
      onReady,
      onPortTaken,
      onFinished,
      onBusy,
    });
    const { child } = incarnation;
    const { readyTimeoutMs } = this.spec;
    const onLate = (limitMs: number): void => {
      lateMs = limitMs;
      child?.kill("SIGKILL");
    };
    const timer =
      readyTimeoutMs === undefined
        ? undefined
        : setTimeout(() => onLate(readyTimeoutMs), readyTimeoutMs);
    this.current = incarnation;
    if (child?.pid !== undefined) events.spawned(this.name, child.pid);
    const reason = await incarnation.ended;
    clearTimeout(timer);
    this.ready = false;
    this.current = undefined;
    if (child?.pid !== undefined) events.ended(this.name, child.pid);
    return lateMs === undefined ? reason : `it was not ready within ${lateMs / 1_000} s`;
  }
}

/** Why a part is not started: how it ended before, if it did, and what is against it. */
export function notStartedNow(name: string, died: string | undefined, fault: string): CliError {
  const before = died === undefined ? "" : `${died}, and `;
  return new CliError("CHILD_FAILED", `${name}: ${before}${fault}.`);
}

/**
 * What the process said about its own end: the last line that begins with its name, and the lines
 * that belong to it, such as one for each wrong setting. Its log is JSON, line by line.
 */
function lastWords(name: string, tail: readonly string[]): string | undefined {
  const first = tail.findLastIndex((line) => line.startsWith(`${name}: `));
  const start = tail[first]?.slice(name.length + 2);
  if (start === undefined) return undefined;
  const rest = tail.slice(first + 1);
  const end = rest.findIndex((line) => !line.startsWith(" "));
  return [start, ...(end === -1 ? rest : rest.slice(0, end))].join("\n");
}

/** Words of one line for each start that is tried; all of them are told when it is given up. */
function firstOf(words: string): string {
  return (words.split("\n")[0] ?? "").replace(/:$/, "");
}

/** A process's own sentence about its end is enough; without one the last lines have to do. */
function deathReport(death: {
  readonly name: string;
  readonly reason: string;
  readonly words: string | undefined;
  readonly tail: readonly string[];
}): CliError {
  const { name, reason, words, tail } = death;
  const lines =
    tail.length === 0 ? "." : `; its last lines:\n${tail.slice(-SHOWN_LINES).join("\n")}`;
  const shown = words === undefined ? `; it printed no reason${lines}` : `: ${words}`;
  const message = `${name} died ${MAX_QUICK_DEATHS} times in a row (${reason})${shown}`;
  return new CliError("CHILD_FAILED", message, { details: { name, reason } });
}
