/** The embedded PostgreSQL: one real server per home, loopback only, gone when the kit is gone. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, renameSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { errorCode } from "../../chain/errors.js";
import { type Guardian, startGuardian } from "../../runtime/process/guardian.js";
import type { Logger } from "../../runtime/process/logger.js";
import { identifyProcess } from "../../runtime/process/process-identity.js";
import { embeddedDatabaseUrl, postgresPasswordPath } from "../../runtime/config/service-urls.js";
import { sleep, withTimeout } from "../../runtime/process/task.js";
import { openSqlSession } from "../../runtime/sql/sql-session.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import { type PostgresBinaries, preparePostgresBinaries } from "./binaries.js";
import { appendLog, LOGS_MODE } from "../home/append-log.js";
import {
  type ClusterPlace,
  checkCluster,
  createCluster,
  placeCluster,
  takeFilePassword,
} from "./cluster.js";
import { EmbeddedPostgresError, folderErrorFromOutput } from "./errors.js";
import { claimCluster } from "./cluster-owner.js";
import { endServer, killServer, readPostmasterFile, stopSurvivor } from "./survivor.js";

/** How a server process ended. */
export interface PostgresExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What it said of its folder before it gave up; undefined where something else ended it. */
  readonly fault?: EmbeddedPostgresError | undefined;
}

/** A running server. */
export interface EmbeddedPostgres {
  /** Connection URL of the database `causeway`, with the password; never log it. */
  readonly url: string;
  readonly pid: number;
  /** Resolves when the server process is gone, for whatever reason; never rejects. */
  readonly exited: Promise<PostgresExit>;
  /** Fast shutdown, SIGKILL after 3.5 s; may be called again. */
  stop(): Promise<void>;
}

/** What `startEmbeddedPostgres` needs. */
export interface EmbeddedPostgresOptions {
  /** Home folder; its lock must be held by the caller. */
  readonly home: string;
  /** Port on 127.0.0.1. */
  readonly port: number;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Ends the server when this process is killed; without one, the server gets its own. */
  readonly guardian?: Guardian;
  /** Fires where another kit has the home: the server is killed at once then. */
  readonly lost?: AbortSignal | undefined;
  /** Told sentences for people: a first initialisation, a folder outside the home. */
  readonly notice?: (sentence: string) => void;
  /** Further server settings, for example `{ fsync: "off" }` in tests. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Longest that a start may take; recovery after a crash replays at most some 100 MB of log. */
const START_TIMEOUT_MS = 120_000;

/** How long backends of a killed server may take to notice and leave. */
const LEFTOVER_TIMEOUT_MS = 10_000;

/** Pause between looks at the starting server. */
const POLL_MS = 20;

/** Longest that a server which is ready is asked for a login; a busy disk makes it slow. */
const LOGIN_TIMEOUT_MS = 30_000;

/** PostgreSQL's `invalid_password`. */
const WRONG_PASSWORD = "28P01";

/** Lines of server output kept for a fault's message. */
const MAX_TAIL_LINES = 40;

/** Size at which `logs/postgres.log` becomes `logs/postgres.log.1`; at most two files exist. */
const MAX_LOG_BYTES = 5_000_000;

/**
 * Settings of the server. Errors of single statements are the clients' to log; jit would only slow
 * down our short statements. The log of writes has PostgreSQL's own bound of 1 GB: with a quarter of
 * it a busy hour is one checkpoint behind the other, each of which logs whole pages anew. Pages lie
 * in memory or on a disk without heads: by PostgreSQL's default for turning ones, a batch of payments
 * is looked for by reading the whole table. A server one of whose processes has crashed ends, and
 * whoever watches it starts it: where it recovers by itself and that fails at once (a full disk),
 * PostgreSQL 18 may not hear of it and then stands for ever, neither serving nor gone.
 */
const SERVER_SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "100",
  timezone: "UTC",
  log_timezone: "UTC",
  log_min_messages: "log",
  log_checkpoints: "off",
  restart_after_crash: "off",
  jit: "off",
  random_page_cost: "1.1",
};

/**
 * Starts the home's server, making the cluster at the first start. A server that survived a killed
 * kit is stopped first.
 * @throws EmbeddedPostgresError, or the signal's reason
 */
export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { home, signal } = options;
  const notice =
    options.notice ?? ((sentence: string) => options.log.info({ sentence }, "postgres"));
  const place = placeCluster(home, notice);
  const binaries = preparePostgresBinaries({
    account: place.account,
    copyFolder: join(home, "data"),
    notice,
  });
  const context = { place, home, binaries, signal };
  if (place.isNew) {
    await createCluster(context);
  } else {
    if (place.link !== undefined) await claimCluster(place.folder, home, place.link);
    await stopSurvivor(place.folder, signal);
    await checkCluster(context);
  }
  await assertPortFree(options.port);
  // Before there is a server: a fault must leave none behind.
  const served = { ...options, url: embeddedDatabaseUrl(options) };
  const guardian = options.guardian ?? startGuardian({ log: options.log });
  const giveUpAtMs = performance.now() + LEFTOVER_TIMEOUT_MS;
  let isPasswordSet = place.isNew;
  for (;;) {
    options.lost?.throwIfAborted();
    const server = new ServerProcess(served, place, binaries, guardian);
    try {
      await server.ready(signal);
      if (isPasswordSet || !(await refusesPassword(served, signal))) return server;
      await server.end();
      await takeFilePassword(context);
      isPasswordSet = true;
      notice(
        `The database in ${place.folder} had another password, as one that was put back has: it has ` +
          `now the password that ${postgresPasswordPath(home)} holds.`,
      );
    } catch (error) {
      await server.end();
      if (!server.metLeftovers || performance.now() > giveUpAtMs || signal.aborted) {
        server.releaseGuardian();
        throw error;
      }
      await sleep(200, { signal });
    }
  }
}

/** Whether the server refuses the home's password; what else keeps clients from it is theirs to tell. */
async function refusesPassword(
  { url, log }: { readonly url: string; readonly log: Logger },
  signal: AbortSignal,
): Promise<boolean> {
  const logIn = async (): Promise<void> => {
    const session = await openSqlSession({ url, applicationName: "causeway kit", log });
    await session.close();
  };
  try {
    await withTimeout(logIn, { timeoutMs: LOGIN_TIMEOUT_MS, signal });
    return false;
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof SqlError && error.details["sqlState"] === WRONG_PASSWORD;
  }
}

/** One run of the server program. */
class ServerProcess implements EmbeddedPostgres {
  readonly url: string;
  readonly pid: number;
  readonly exited: Promise<PostgresExit>;
  readonly #options: EmbeddedPostgresOptions;
  readonly #place: ClusterPlace;
  readonly #guardian: Guardian;
  readonly #child: ChildProcess;
  readonly #logPath: string;
  readonly #tail: string[] = [];
  #hasExited = false;
  #stopping: Promise<void> | undefined;

  constructor(
    options: EmbeddedPostgresOptions & Pick<EmbeddedPostgres, "url">,
    place: ClusterPlace,
    binaries: PostgresBinaries,
    guardian: Guardian,
  ) {
    this.url = options.url;
    this.#options = options;
    this.#place = place;
    this.#guardian = guardian;
    this.#logPath = join(options.home, "logs", "postgres.log");
    mkdirSync(dirname(this.#logPath), { recursive: true, mode: LOGS_MODE });
    const settings = { ...SERVER_SETTINGS, port: String(options.port), ...options.settings };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    this.#child = spawn(binaries.postgres, ["-D", place.folder, ...flags], {
      ...place.account,
      cwd: "/",
      env: { LC_ALL: "C", TZ: "UTC" },
      // A group of its own: Ctrl-C must reach the kit only, which stops the server last.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.pid = this.#child.pid ?? 0;
    this.exited = this.#watch();
    if (this.pid !== 0) {
      guardian.watch({ pid: this.pid, stopSignal: "SIGINT" });
    }
  }

  /** True when the start failed because backends of a killed server had not left yet. */
  get metLeftovers(): boolean {
    return this.#tail.some((line) => /pre-existing shared memory block/.test(line));
  }

  /** Waits until the server takes connections. */
  async ready(signal: AbortSignal): Promise<void> {
    const deadlineMs = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      if (this.#hasExited) {
        throw this.#startError();
      }
      const file = readPostmasterFile(this.#place.folder);
      if (file?.pid === this.pid && file.status === "ready") {
        return;
      }
      if (performance.now() > deadlineMs) {
        throw new EmbeddedPostgresError(
          "START_FAILED",
          `PostgreSQL did not get ready within ${START_TIMEOUT_MS / 1_000} s; see ${this.#logPath}`,
        );
      }
      await sleep(POLL_MS, { signal });
    }
  }

  stop(): Promise<void> {
    this.#stopping ??= this.end().then(() => this.releaseGuardian());
    return this.#stopping;
  }

  /** Ends the server process; the guardian stays. */
  async end(): Promise<void> {
    const identity = this.#hasExited ? undefined : identifyProcess(this.pid);
    if (identity !== undefined) {
      await endServer(identity, new AbortController().signal);
    }
    await this.exited;
  }

  /** Closes the guardian, unless it is the caller's. */
  releaseGuardian(): void {
    if (this.#options.guardian === undefined) {
      this.#guardian.close();
    }
  }

  #watch(): Promise<PostgresExit> {
    const { lost } = this.#options;
    const onLost = (): void => {
      const identity = identifyProcess(this.pid);
      if (identity !== undefined) killServer(identity);
    };
    lost?.addEventListener("abort", onLost, { once: true });
    this.#child.stdout?.on("data", (chunk: Buffer) => this.#record(chunk.toString("utf8")));
    this.#child.stderr?.on("data", (chunk: Buffer) => this.#record(chunk.toString("utf8")));
    return new Promise((resolve) => {
      const onEnd = (exit: PostgresExit) => {
        this.#hasExited = true;
        lost?.removeEventListener("abort", onLost);
        this.#guardian.forget(this.pid);
        resolve(exit);
      };
      this.#child.on("error", (error) => {
        this.#record(`FATAL: ${errorCode(error)} ${error.message}\n`);
        onEnd({ code: null, signal: null });
      });
      this.#child.on("close", (code, signal) => onEnd({ code, signal, fault: this.#fault(code) }));
    });
  }

  /** Keeps the last lines and appends all to the log file, which is bounded. */
  #record(text: string): void {
    this.#tail.push(...text.split("\n").filter((line) => line !== ""));
    this.#tail.splice(0, Math.max(0, this.#tail.length - MAX_TAIL_LINES));
    try {
      const size = statSync(this.#logPath, { throwIfNoEntry: false })?.size ?? 0;
      if (size > MAX_LOG_BYTES) {
        renameSync(this.#logPath, `${this.#logPath}.1`);
      }
      appendLog(this.#logPath, text);
    } catch (error) {
      // A full disk must not end the supervisor; the server itself reports its own trouble.
      this.#options.log.warn({ cause: errorCode(error) }, "postgres log cannot be written");
    }
  }

  /** A server that gives up has told why; one that a signal ended has not. */
  #fault(code: number | null): EmbeddedPostgresError | undefined {
    if (code === null || code === 0) return undefined;
    return folderErrorFromOutput(this.#place.folder, this.#tail.join("\n"));
  }

  #startError(): EmbeddedPostgresError {
    const output = this.#tail.join("\n");
    if (/could not bind|could not create any TCP\/IP sockets/.test(output)) {
      return portTaken(this.#options.port);
    }
    const known = folderErrorFromOutput(this.#place.folder, output);
    const line = this.#tail.find((text) => /FATAL|PANIC/.test(text)) ?? this.#tail.at(-1) ?? "";
    return (
      known ??
      new EmbeddedPostgresError("START_FAILED", `PostgreSQL did not start: ${line.trim()}`, {
        details: { log: this.#logPath },
      })
    );
  }
}

/** Fails early and by name; the server's own message would come after its recovery. */
async function assertPortFree(port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error) =>
      reject(errorCode(error) === "EADDRINUSE" ? portTaken(port) : error),
    );
    probe.listen({ host: "127.0.0.1", port, exclusive: true }, () => probe.close(() => resolve()));
  });
}

function portTaken(port: number): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    "PORT_TAKEN",
    `port ${port} on 127.0.0.1, wanted by the embedded PostgreSQL, is taken`,
    { details: { port } },
  );
}
