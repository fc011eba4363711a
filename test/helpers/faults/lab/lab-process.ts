/** One process of the kit under a test's hand: started, killed, frozen, and brought back when it dies. */
import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { compiledFolder } from "../../services/services.js";
import { until } from "../../until.js";

/** Time to come up on a busy machine. */
const START_TIMEOUT_MS = 120_000;

/** Pause before a process that died is started again. */
const RESTART_DELAY_MS = 100;

/** Characters of output that are kept. */
const MAX_OUTPUT = 400_000;

/** What is run. */
export interface LabProgram {
  readonly name: string;
  /** Compiled entry, relative to the product's folder. */
  readonly script: string;
  readonly args: readonly string[];
  /** Its whole environment but PATH. */
  readonly env: Readonly<Record<string, string>>;
}

/** A process that comes back after every death, as under a supervisor, until it is stopped. */
export class LabProcess {
  /** Deaths by SIGKILL: a failpoint's, or the test's. */
  kills = 0;
  /** Ends that nobody asked for; the kit's processes shall have none. */
  readonly ownEnds: string[] = [];
  #child: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();
  #folder: string | undefined;
  #output = "";
  #isReady = false;
  #isStopping = false;
  #restart: NodeJS.Timeout | undefined;

  constructor(readonly program: LabProgram) {}

  /** The last that it said, over all of its lives. */
  get output(): string {
    return this.#output;
  }

  get pid(): number {
    const { pid } = this.#child ?? {};
    if (pid === undefined) throw new Error(`${this.program.name} does not run`);
    return pid;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Starts it and waits until it is ready; `env` counts for this life only. */
  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.begin(env);
    await this.untilReady();
  }

  /** Starts it and does not wait. */
  async begin(env: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#folder ??= await compiledFolder();
    this.#isStopping = false;
    this.#spawn(this.#folder, env);
  }

  async untilReady(): Promise<void> {
    await until(() => this.#isReady, {
      timeoutMs: START_TIMEOUT_MS,
      what: `${this.program.name} is ready`,
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.#output.slice(-2_000)}`);
    });
  }

  /** `kill -9`; it comes back by itself, and is not ready before. */
  kill(): void {
    this.#isReady = false;
    this.#child?.kill("SIGKILL");
  }

  /** Resolves when it has died by SIGKILL so many times in all. */
  async untilKilled(kills: number): Promise<void> {
    await until(() => this.kills >= kills, {
      timeoutMs: START_TIMEOUT_MS,
      what: `${this.program.name} dies ${kills} times`,
    });
  }

  /** Stops the process where it stands. */
  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  /** Lets it go on. */
  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  /** Tells the process by a signal that the test and it know. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Ends it for good; resolves when it is gone. */
  async stop(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#restart);
    this.#child?.kill("SIGCONT");
    this.#child?.kill(signal);
    await this.#exited;
  }

  #spawn(folder: string, env: Readonly<Record<string, string>>): void {
    const { script, args } = this.program;
    const child = spawn(process.execPath, [path.join(folder, script), ...args], {
      // Its end is this process' end: it watches its standard input.
      stdio: ["pipe", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], CAUSEWAY_SUPERVISED: "1", ...this.program.env, ...env },
    });
    this.#child = child;
    this.#isReady = false;
    const record = (chunk: Buffer) => {
      const text = chunk.toString();
      this.#output = (this.#output + text).slice(-MAX_OUTPUT);
      if (text.includes('"ready":true')) this.#isReady = true;
    };
    child.stdout.on("data", record);
    child.stderr.on("data", record);
    this.#exited = new Promise((resolve) => {
      // Behind its last words, which say why.
      child.once("close", (code, signal) => {
        this.#isReady = false;
        this.#note(folder, code, signal);
        resolve();
      });
    });
  }

  #note(folder: string, code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#isStopping) return;
    if (signal === "SIGKILL") this.kills += 1;
    else this.ownEnds.push(`exit ${code ?? signal}: ${this.#output.slice(-4_000)}`);
    this.#restart = setTimeout(() => this.#spawn(folder, {}), RESTART_DELAY_MS);
  }
}
