/** The life of one process: arguments, start, readiness line, stop in reverse, exit code. */
import { setMaxListeners } from "node:events";
import { errorCode, errorMessage } from "../../chain/errors.js";
import { ConfigError, type Environment, processEnvironment } from "../config/config.js";
import { logLevelFaults, readLogLevel } from "../config/log-level.js";
import { settingFaults } from "../config/read-together.js";
import { onCtrlC } from "./interrupts.js";
import { type Logger, createLogger } from "./logger.js";
import { ArgumentError, readProcessArguments, TAKEN_PORT_REMEDY } from "./process-arguments.js";
import { MAX_TIMER_MS } from "./task.js";

/** A started part of a process. */
export interface Service {
  readonly name: string;
  /** Ends the part and waits until it is gone; called once. */
  stop(): Promise<void>;
}

/** What a process's `start` is given. */
export interface ProcessContext {
  /** Fires when the process shall end; start-up and loops must leave then. */
  readonly signal: AbortSignal;
  /** Absolute path of the home folder. */
  readonly home: string;
  /** The flag, else what the home's files were written with, else 0. */
  readonly portOffset: number;
  readonly env: Environment;
  readonly log: Logger;
  /**
   * Ends the process with exit code 1 because of a fault in the background (a broken invariant,
   * a loop that died). Returns at once; services are stopped in order.
   */
  readonly fatal: (error: unknown) => void;
  /**
   * Ends the process with exit code 0 because its work is done; returns at once. A supervisor is told so
   * with the reason, shows that to people, and does not start the process again.
   */
  readonly finish: (reason: string) => void;
  /**
   * Ends the process in order and has another program go on in its place (`successor.ts`), whose exit code is
   * this one's; returns at once. Where somebody asks the process to end before the services have stopped, or
   * one of them does not stop cleanly, nothing goes on.
   */
  readonly handOver: (reason: string, successor: () => Promise<number>) => void;
  /**
   * Tells a supervisor that the start does what may take long, and what; it waits without an end from then
   * on, and shows that to people.
   */
  readonly busy: (reason: string) => void;
}

/** One process of the kit. */
export interface ProcessDefinition {
  /** Name in logs and in the readiness line, for example "deposit-watcher". */
  readonly name: string;
  /**
   * Starts everything and resolves when it serves. The services are stopped in reverse order.
   * Whatever is started before a fault must be undone by `start` itself.
   */
  readonly start: (context: ProcessContext) => Promise<readonly Service[]>;
  /**
   * Reads the settings that `start` reads. Asked only where something else is wrong already, so that all of
   * it is told at once. Throws ConfigError.
   */
  readonly settings?: (given: Pick<ProcessContext, "home" | "env" | "portOffset">) => unknown;
}

/** Time for an orderly stop; the contract gives 10 s until the process must be gone. */
const STOP_DEADLINE_MS = 8_000;

/** The same when the supervisor died; the contract gives 5 s. */
const ORPHAN_STOP_DEADLINE_MS = 4_000;

/**
 * Runs one process from its arguments (`argv`, by default those of the command line)
 * `[--home DIR] [--port-offset N]` (home: flag, else
 * `CAUSEWAY_HOME`, else `.causeway` in the working folder). Prints one line
 * `{"ready":true,"name":...}` (through IPC if there is a channel, else on stdout) when all has
 * started. A fault at the start prints one sentence and exits 1; where a port is taken, a supervisor is told
 * `{"portTaken":true,"name":...}` through IPC. Where `finish` was called it is told
 * `{"finished":true,"name":...,"reason":...}`, and the exit code is 0; where a start takes long on purpose,
 * `{"busy":true,"name":...,"reason":...}`. SIGINT and SIGTERM stop the
 * services in reverse order and exit 0. With `CAUSEWAY_SUPERVISED=1` the process also ends when
 * its IPC channel, or without one its stdin, closes.
 */
export function runProcess(
  definition: ProcessDefinition,
  argv: readonly string[] = process.argv.slice(2),
): void {
  void new ProcessRun(definition, argv).run();
}

/** State of the one process: what has started, and whether it is ending. */
class ProcessRun {
  readonly #definition: ProcessDefinition;
  readonly #argv: readonly string[];
  readonly #controller = new AbortController();
  readonly #env = processEnvironment();
  readonly #log: Logger;
  #services: readonly Service[] = [];
  #starting: Promise<void> = Promise.resolve();
  #exitCode = 0;
  /** What goes on when the services have stopped. */
  #successor: (() => Promise<number>) | undefined;

  constructor(definition: ProcessDefinition, argv: readonly string[]) {
    this.#definition = definition;
    this.#argv = argv;
    const level = readLogLevel(this.#env) ?? "info";
    this.#log = createLogger({ component: definition.name, level });
  }

  async run(): Promise<void> {
    // Every wait of the process hangs on this one signal; Node warns at eleven by default.
    setMaxListeners(0, this.#controller.signal);
    this.#listen();
    if (this.#controller.signal.aborted) return;
    // A process whose parts all happen to idle must not end by itself: its end is always #end.
    setInterval(() => undefined, MAX_TIMER_MS);
    this.#starting = this.#start();
    await this.#starting;
  }

  async #start(): Promise<void> {
    try {
      const { home, portOffset } = this.#readArguments();
      this.#services = await this.#definition.start({
        signal: this.#controller.signal,
        home,
        portOffset,
        env: this.#env,
        log: this.#log,
        fatal: (error) => this.#fail(error, "stopping after a fault"),
        busy: (reason) => {
          process.send?.({ busy: true, name: this.#definition.name, reason });
        },
        finish: (reason) => {
          process.send?.({ finished: true, name: this.#definition.name, reason });
          this.#end({ exitCode: 0, deadlineMs: STOP_DEADLINE_MS, reason });
        },
        handOver: (reason, successor) => {
          if (this.#controller.signal.aborted) return;
          this.#successor = successor;
          this.#end({ exitCode: 0, deadlineMs: STOP_DEADLINE_MS, reason });
        },
      });
      if (!this.#controller.signal.aborted) {
        announce({ ready: true, name: this.#definition.name });
      }
    } catch (error) {
      if (this.#controller.signal.aborted) {
        this.#log.debug({ err: error }, "start was interrupted");
        return;
      }
      this.#log.debug({ err: error }, "start failed");
      const isPortTaken = errorCode(error) === "PORT_TAKEN";
      const remedy = isPortTaken ? `. ${TAKEN_PORT_REMEDY}` : "";
      say(process.stderr, `${this.#definition.name}: ${errorMessage(error)}${remedy}`);
      if (isPortTaken) {
        process.send?.({ portTaken: true, name: this.#definition.name });
      }
      this.#end({ exitCode: 1, deadlineMs: STOP_DEADLINE_MS, reason: "start failed" });
    }
  }

  /** Throws what is wrong with arguments and environment, together with what is with the settings. */
  #readArguments(): Pick<ProcessContext, "home" | "portOffset"> {
    const { fault, ...given } = readProcessArguments(this.#argv, this.#env);
    const found = logLevelFaults(this.#env);
    if (fault === undefined && found.length === 0) return given;
    const { settings } = this.#definition;
    const ofSettings = settingFaults(() => settings?.({ ...given, env: this.#env }));
    const faults = [...found, ...ofSettings];
    if (fault === undefined) throw new ConfigError(faults);
    if (faults.length === 0) throw fault;
    const message = `${fault.message}\n${new ConfigError(faults).message}`;
    throw new ArgumentError("INVALID_ARGUMENT", message, { cause: fault, details: { faults } });
  }

  /** Signals, the supervisor's end and faults that nobody caught. */
  #listen(): void {
    onCtrlC(this.#env, () => {
      // A second one: the person does not want to wait for an orderly end. One that ends for another program
      // was not asked by anybody yet.
      if (this.#controller.signal.aborted && this.#successor === undefined) process.exit(1);
      this.#end({ exitCode: 0, deadlineMs: STOP_DEADLINE_MS, reason: "SIGINT" });
    });
    // Supervisors send SIGTERM to the group and again to the process: repeats mean nothing.
    process.on("SIGTERM", () =>
      this.#end({ exitCode: 0, deadlineMs: STOP_DEADLINE_MS, reason: "SIGTERM" }),
    );
    process.on("uncaughtException", (error) => this.#fail(error, "uncaught exception"));
    process.on("unhandledRejection", (error) => this.#fail(error, "unhandled rejection"));
    if (this.#env["CAUSEWAY_SUPERVISED"] === "1") {
      this.#watchSupervisor();
    }
  }

  #watchSupervisor(): void {
    const onOrphaned = () =>
      this.#end({ exitCode: 0, deadlineMs: ORPHAN_STOP_DEADLINE_MS, reason: "supervisor died" });
    if (process.send === undefined) {
      process.stdin.on("end", onOrphaned);
      process.stdin.on("error", onOrphaned);
      process.stdin.resume();
    } else {
      process.on("disconnect", onOrphaned);
      // It died while this process was loading: the channel has closed, and says so no more.
      if (!process.connected) onOrphaned();
    }
  }

  #fail(error: unknown, message: string): void {
    this.#log.error({ err: error }, message);
    say(process.stderr, `${this.#definition.name}: ${errorMessage(error)}`);
    this.#end({ exitCode: 1, deadlineMs: STOP_DEADLINE_MS, reason: message });
  }

  #end(ending: { exitCode: number; deadlineMs: number; reason: string }): void {
    this.#exitCode = Math.max(this.#exitCode, ending.exitCode);
    if (this.#controller.signal.aborted) {
      this.#successor = undefined;
      return;
    }
    this.#log.info({ reason: ending.reason }, "stopping");
    this.#controller.abort(new DOMException("the process is stopping", "AbortError"));
    const deadline = setTimeout(() => {
      this.#log.error({ deadlineMs: ending.deadlineMs }, "stop took too long");
      process.exit(1);
    }, ending.deadlineMs);
    void this.#stopServices().then(async () => {
      clearTimeout(deadline);
      process.exit(await this.#succeed());
    });
  }

  /** Exit code of this process, or of what went on in its place. */
  async #succeed(): Promise<number> {
    if (this.#successor === undefined || this.#exitCode !== 0) return this.#exitCode;
    try {
      return await this.#successor();
    } catch (error) {
      this.#log.error({ err: error }, "the next program cannot be started");
      say(process.stderr, `${this.#definition.name}: ${errorMessage(error)}`);
      return 1;
    }
  }

  async #stopServices(): Promise<void> {
    await this.#starting;
    for (const service of this.#services.toReversed()) {
      try {
        await service.stop();
      } catch (error) {
        this.#exitCode = 1;
        this.#log.error({ err: error, service: service.name }, "service did not stop cleanly");
      }
    }
  }
}

/** Tells the supervisor; without an IPC channel the line goes to stdout. */
function announce(message: { readonly ready: true; readonly name: string }): void {
  if (process.send === undefined) {
    say(process.stdout, JSON.stringify(message));
  } else {
    process.send(message);
  }
}

/** A line for whoever started the process; that it cannot be written (a full disk) ends nothing. */
function say(stream: NodeJS.WriteStream, line: string): void {
  if (stream.listenerCount("error") === 0) stream.on("error", () => undefined);
  stream.write(`${line}\n`);
}
