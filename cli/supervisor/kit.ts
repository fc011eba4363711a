/** The kit: every process of the network and the exchange side, started in order, stopped in reverse. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Clock } from "../../runtime/process/clock.js";
import type { Environment } from "../../runtime/config/config.js";
import type { Guardian } from "../../runtime/process/guardian.js";
import type { Logger } from "../../runtime/process/logger.js";
import { EMBEDDED_POSTGRES_PORT } from "../../runtime/config/service-urls.js";
import type { CliError } from "../errors.js";
import { STOP_GRACE_MS } from "../postgres/survivor.js";
import type { HomePaths } from "../home/home.js";
import { HOME_ELSEWHERE } from "../home/home-lock.js";
import { OPTIONAL_PARTS } from "../home/kit-config.js";
import { nodeEnvironment } from "../home/network/kit-network.js";
import type { KitNode } from "../home/network/kit-nodes.js";
import { createLogFile } from "./log-file.js";
import type { ChildRecord } from "./orphans.js";
import { STILL_WAITING_MS } from "../probe/waiting.js";
import { superviseEmbeddedPostgres, type SupervisedPostgres } from "./supervised-postgres.js";
import { runOf } from "../home/network/kit-nodes.js";
import {
  createSupervisedProcess,
  type ProcessEvents,
  type RestartDelays,
  type SupervisedProcess,
} from "./supervised-process.js";

/** Where the processes' entries lie, relative to this file; the same in dist/. */
const SCRIPTS = {
  node: "../../node/main.js",
  "sidecar-online": "../../sidecar/main-online.js",
  "sidecar-offline": "../../sidecar/main-offline.js",
  "deposit-watcher": "../../deposit-watcher/main.js",
  "withdrawal-worker": "../../withdrawal-worker/main.js",
  treasury: "../../withdrawal-worker/treasury/main.js",
  indexer: "../../indexer/main.js",
  explorer: "../../explorer/main.js",
  console: "../../console/main.js",
} as const;

/** A process of the kit. */
export type KitPart = keyof typeof SCRIPTS;

/** The contract's 10 s from a signal to the last process gone, but for what killing takes. */
const STOP_LIMIT_MS = 9_000;

/**
 * Parts that start together, in order: what a later stage needs is ready when it starts. The time
 * for an orderly stop of a stage adds up, with the database's, to less than the limit.
 */
const STAGES: readonly { readonly parts: readonly KitPart[]; readonly stopMs: number }[] = [
  { parts: ["node"], stopMs: 1_500 },
  { parts: ["sidecar-online", "sidecar-offline"], stopMs: 600 },
  { parts: ["deposit-watcher"], stopMs: 1_200 },
  { parts: ["withdrawal-worker", "treasury"], stopMs: 1_200 },
  { parts: ["indexer", "explorer", "console"], stopMs: 800 },
];

/** Parts that can be spared: nothing of the exchange depends on them. */
const SPARABLE: ReadonlySet<string> = new Set(OPTIONAL_PARTS);

/** The first start on a slow disk compiles and replays; it is given time, and more where a part says why. */
const READY_TIMEOUT_MS = 90_000;

/** What the kit is started with. */
export interface KitOptions {
  readonly paths: HomePaths;
  /** One node, or the validators of the kit's network; none where somebody's node is used. */
  readonly nodes: readonly KitNode[];
  readonly portOffset: number;
  readonly env: Environment;
  readonly guardian: Guardian;
  readonly children: ChildRecord;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /**
   * Fires where another kit has the home by now: all processes are killed at once, and nothing of the home is
   * written any more but logs.
   */
  readonly lost: AbortSignal;
  /** True where a start waits for somebody else's node as long as that takes. */
  readonly isPatient: boolean;
  /** Parts that are not started. */
  readonly without?: ReadonlySet<KitPart>;
  /** One line of progress. */
  readonly print: (line: string) => void;
  /** Called once when the kit cannot go on; it has to be stopped then. */
  readonly onFatal: (error: CliError) => void;
  /** Scripts to run instead of the kit's own; for tests. */
  readonly scripts?: Readonly<Record<KitPart, string>>;
  /** Waits before a part is started again, other than the usual ones; for tests. */
  readonly restartDelays?: RestartDelays;
  /** File that tells the build, other than that beside the scripts; for tests. */
  readonly stampFile?: string;
}

/** A kit that is up, or was: `stop` also undoes a start that failed half way. */
export interface Kit {
  /**
   * Starts everything in order.
   * @throws CHILD_FAILED and the embedded server's faults; the caller then calls `stop`
   */
  start(): Promise<void>;
  /** Stops everything in reverse order; never throws. */
  stop(): Promise<void>;
}

/** Absolute paths of the entries of all processes. */
export function kitScripts(): Readonly<Record<KitPart, string>> {
  const locate = (part: KitPart): string => fileURLToPath(new URL(SCRIPTS[part], import.meta.url));
  return {
    node: locate("node"),
    "sidecar-online": locate("sidecar-online"),
    "sidecar-offline": locate("sidecar-offline"),
    "deposit-watcher": locate("deposit-watcher"),
    "withdrawal-worker": locate("withdrawal-worker"),
    treasury: locate("treasury"),
    indexer: locate("indexer"),
    explorer: locate("explorer"),
    console: locate("console"),
  };
}

/** Beside the scripts: of which sources they were built (`bin/setup/compile.mjs`). */
const STAMP_FILE = fileURLToPath(new URL("../../.stamp", import.meta.url));

/** What tells one build from another; undefined where the scripts were made without telling. */
function readStamp(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** Whether the kit brings its own PostgreSQL. */
export function usesEmbeddedPostgres(env: Environment): boolean {
  return env["DATABASE_URL"] === undefined || env["DATABASE_URL"] === "";
}

/** Creates the kit; nothing runs before `start`. */
export function createKit(options: KitOptions): Kit {
  return new KitRun(options);
}

class KitRun implements Kit {
  private postgres: SupervisedPostgres | undefined;
  private readonly stages: { stopMs: number; processes: SupervisedProcess[] }[] = [];
  private isStopping = false;
  /** Parts that were given up, and without which the kit goes on. */
  private readonly spared = new Set<string>();
  private readonly stampFile: string;
  private readonly stamp: string | undefined;

  constructor(private readonly options: KitOptions) {
    const stopMs = STAGES.reduce((sum, stage) => sum + stage.stopMs, STOP_GRACE_MS);
    assert(stopMs < STOP_LIMIT_MS, "a kit of which everything hangs is gone in time");
    this.stampFile = options.stampFile ?? STAMP_FILE;
    this.stamp = readStamp(this.stampFile);
    options.lost.addEventListener("abort", () => this.endAtOnce(), { once: true });
  }

  async start(): Promise<void> {
    const { env, signal, without } = this.options;
    if (usesEmbeddedPostgres(env)) {
      await this.step("postgres", () => this.startPostgres());
    }
    for (const { parts, stopMs } of STAGES) {
      signal.throwIfAborted();
      const processes = parts
        .filter((part) => without?.has(part) !== true)
        .flatMap((part) => (part === "node" ? this.createNodes() : [this.createProcess(part)]));
      this.stages.push({ stopMs, processes });
      await Promise.all(processes.map((process) => this.startProcess(process)));
    }
  }

  /** Without a part that can be spared the kit goes on; it has been told why by then. */
  private async startProcess(process: SupervisedProcess): Promise<void> {
    const { signal } = this.options;
    try {
      await this.step(process.name, () => process.start({ signal }));
    } catch (error) {
      if (signal.aborted || !this.spared.has(process.name)) throw error;
    }
  }

  /** Says that the kit goes on without a part; false where it cannot. */
  private spare(name: string, error: CliError): boolean {
    if (!this.canSpare(name)) return false;
    this.spared.add(name);
    const { nodes, print } = this.options;
    const node = nodes.find((one) => one.name === name);
    const left = nodes.filter((one) => !this.spared.has(one.name)).length;
    const words =
      node === undefined
        ? "The kit goes on without it."
        : `The kit goes on without it: ${left} of ${nodes.length} validators are left. ` +
          `Repair ${node.home}, then stop the kit and start it again.`;
    print(`  ${error.message} ${words}`);
    return true;
  }

  /**
   * The first node serves the kit and cannot be spared. All validators have equal power, and more than two
   * thirds of them have to stay.
   */
  private canSpare(name: string): boolean {
    const { nodes } = this.options;
    const node = nodes.find((one) => one.name === name);
    if (node === undefined) return SPARABLE.has(name);
    // Behind another build its home is sound: all of the kit is to be started again.
    if (node === nodes[0] || this.startFault() !== undefined) return false;
    const left = nodes.filter((one) => one !== node && !this.spared.has(one.name)).length;
    return left * 3 > nodes.length * 2;
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    const { log } = this.options;
    for (const { processes, stopMs } of this.stages.toReversed()) {
      await Promise.all(processes.map((process) => process.stop({ graceMs: stopMs })));
    }
    try {
      await this.postgres?.stop();
    } catch (error) {
      log.error({ err: error }, "the embedded server did not stop cleanly");
    }
    await this.options.children.settled();
  }

  /** Without any order. The database's supervision does its own part. */
  private endAtOnce(): void {
    this.isStopping = true;
    for (const part of this.stages.flatMap(({ processes }) => processes)) {
      void part.stop({ graceMs: 0 });
    }
  }

  private async step(name: string, work: () => Promise<void>): Promise<void> {
    const { clock, print } = this.options;
    const startedMs = clock.monotonicMs();
    const elapsed = (): string => ((clock.monotonicMs() - startedMs) / 1_000).toFixed(1);
    const signsOfLife = setInterval(() => {
      print(`  ${name.padEnd(18)} is still starting (${elapsed()} s)`);
    }, STILL_WAITING_MS);
    try {
      await work();
    } finally {
      clearInterval(signsOfLife);
    }
    print(`  ${name.padEnd(18)} ready after ${elapsed()} s`);
  }

  private async startPostgres(): Promise<void> {
    const { paths, portOffset, guardian, log, clock, print, signal, lost, onFatal } = this.options;
    const port = EMBEDDED_POSTGRES_PORT + portOffset;
    const notice = (sentence: string): void => print(`  ${sentence}`);
    const startFault = () => this.startFault();
    this.postgres = await superviseEmbeddedPostgres(
      { home: paths.home, port, guardian, log, clock, notice, startFault, lost, onGaveUp: onFatal },
      signal,
    );
  }

  private createNodes(): SupervisedProcess[] {
    const { nodes, portOffset } = this.options;
    return nodes.map((node) =>
      this.createProcess("node", {
        name: node.name,
        home: node.home,
        portOffset: portOffset + node.portStep,
        env: nodeEnvironment(nodes, node, this.options),
      }),
    );
  }

  private createProcess(
    part: KitPart,
    run: {
      readonly name: string;
      readonly home: string;
      readonly portOffset: number;
      readonly env: Environment;
    } = { ...this.options, name: part, home: this.options.paths.home },
  ): SupervisedProcess {
    const { paths, clock, isPatient, scripts = kitScripts(), restartDelays } = this.options;
    const readyTimeoutMs = isPatient ? undefined : READY_TIMEOUT_MS;
    const { name, home, portOffset, env } = run;
    const args = ["--home", home, "--port-offset", String(portOffset)];
    return createSupervisedProcess(
      { name, program: part, script: scripts[part], args, ...runOf(part, env), readyTimeoutMs },
      {
        log: createLogFile(paths.logs, name),
        events: this.events(name),
        clock,
        startFault: () => this.startFault(),
        ...(restartDelays === undefined ? {} : { delays: restartDelays }),
      },
    );
  }

  /**
   * On another kit's home nothing is started. A second start behind an update builds the new release in the
   * place of the one that runs. A part of it beside those of the old one would change the ledger's tables
   * under them.
   */
  private startFault(): string | undefined {
    if (this.options.lost.aborted) return HOME_ELSEWHERE;
    if (this.stamp === undefined || readStamp(this.stampFile) === this.stamp) return undefined;
    const folder = dirname(this.stampFile);
    return `${folder} was built anew while this kit runs: start the kit again, as for another release`;
  }

  private events(owner: string): ProcessEvents {
    const { guardian, children, print, onFatal } = this.options;
    return {
      spawned: (name, pid) => {
        guardian.watch({ pid });
        children.add(name, pid);
      },
      ended: (_name, pid) => {
        guardian.forget(pid);
        children.remove(pid);
      },
      busy: (name, reason) => {
        if (!this.isStopping) print(`  ${name.padEnd(18)} ${reason}`);
      },
      restarting: (name, reason) => {
        if (!this.isStopping) print(`  ${name}: ${reason}; starting it again`);
      },
      gaveUp: (error) => {
        if (this.isStopping || this.spare(owner, error)) return;
        onFatal(error);
      },
      finished: (name, reason) => {
        if (this.isStopping) return;
        print(
          `  ${name}: its work is done (${reason}); it is not started again, and all others go on`,
        );
      },
    };
  }
}
