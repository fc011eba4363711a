/** A whole kit for end-to-end tests: real processes from the compiled sources, 500 ms blocks. */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { DEFAULT_PORTS, type PortName } from "../../chain/networks.js";
import { findBlockedPorts } from "../../cli/home/ports.js";
import { PATIENT_CALLS } from "./processes/node-process.js";
import { MOST_WORKERS, RUNS } from "./ports.js";
import { compiledFolder } from "./services/services.js";
import { until } from "./until.js";

/** Time for a kit to come up on a busy machine: initdb, migrations, six processes. */
const START_TIMEOUT_MS = 240_000;

/**
 * Four blocks in the time of one: less to wait for. Shorter ones would only make more of them, each
 * with work for six processes, and longer chains to walk on a machine that is busy.
 */
const BLOCK_INTERVAL_MS = 500;

/** A kit without demonstration and without the parts that only people look at. */
export const LEAN = ["--no-demo", "--no-explorer", "--no-indexer", "--no-console"] as const;

/** How a kit is started. */
export interface KitOptions {
  readonly home?: string;
  readonly portOffset: number;
  readonly env?: Record<string, string>;
  /** Default `LEAN`. */
  readonly args?: readonly string[];
  /** True for a kit on a chain that exists, whose pace is not the kit's to choose. */
  readonly isAttached?: boolean;
  /** True for a kit whose parts come up and say that they are not ready. */
  readonly isClosed?: boolean;
}

/** A kit that runs. */
export interface RunningKit {
  readonly home: string;
  readonly process: ChildProcess;
  port(name: PortName): number;
  url(name: PortName): string;
  key(file: string): string;
  output(): string;
  /** SIGTERM; resolves with the exit code when every process is gone. */
  stop(): Promise<number | null>;
  /** SIGKILL of the supervisor alone; its children end by themselves. */
  kill(): Promise<void>;
  /** Deletes the home. */
  remove(): void;
}

/** Kits that one test file may have at once. */
const SLOTS_PER_WORKER = 5;

const PLACES = RUNS * MOST_WORKERS * SLOTS_PER_WORKER;

/** Places that would give a part a port to which `fetch` does not connect: others stand behind the last. */
const BLOCKED_PLACES = Array.from({ length: PLACES }, (_, place) => place).filter((place) => {
  const wanted = Object.values(DEFAULT_PORTS).map((port) => ({ port: port + offsetOf(place) }));
  return findBlockedPorts(wanted).length > 0;
});

/**
 * Offsets for the kits of a test file: never the same for two files at the same time, of one run or of up
 * to seven. Steps of 20 never make two parts of two kits meet, and all ports stay below
 * those that systems hand out.
 */
export function kitOffset(slot: number): number {
  const worker = Number(process.env["JEST_WORKER_ID"] ?? 1) % MOST_WORKERS;
  const run = Number(process.env["CAUSEWAY_TEST_RUN"]);
  const place = (run * MOST_WORKERS + worker) * SLOTS_PER_WORKER + slot;
  const blocked = BLOCKED_PLACES.indexOf(place);
  return offsetOf(blocked === -1 ? place : PLACES + blocked);
}

function offsetOf(place: number): number {
  return 100 + place * 20;
}

/** Starts a kit without its demonstration and waits until everything is ready. */
export async function startKit(options: KitOptions): Promise<RunningKit> {
  const home = options.home ?? fs.mkdtempSync(path.join(os.tmpdir(), "causeway-kit-"));
  // PostgreSQL runs as nobody where the tests run as root: it must be able to enter.
  fs.chmodSync(home, 0o755);
  const main = path.join(await compiledFolder(), "cli", "kit-main.js");
  const child = spawn(
    process.execPath,
    [
      main,
      "--home",
      home,
      "--port-offset",
      String(options.portOffset),
      ...(options.isAttached === true ? [] : ["--block-interval-ms", String(BLOCK_INTERVAL_MS)]),
      ...(options.args ?? LEAN),
    ],
    {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...PATIENT_CALLS, ...options.env },
    },
  );
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const isRead = new Promise((resolve) => child.once("close", resolve));
  const port = (name: PortName) => DEFAULT_PORTS[name] + options.portOffset;
  const kit: RunningKit = {
    home,
    process: child,
    port,
    url: (name) => `http://127.0.0.1:${port(name)}`,
    key: (file) => fs.readFileSync(path.join(home, "config", file), "utf8").trim(),
    output: () => output,
    async stop() {
      child.kill("SIGTERM");
      return exited;
    },
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
    // Who was killed just now may still end a file.
    remove: () => fs.rmSync(home, { recursive: true, force: true, maxRetries: 20 }),
  };
  await until(() => (options.isClosed === true ? isAlive(kit) : isReady(kit)), {
    timeoutMs: START_TIMEOUT_MS,
    what: "the kit is ready",
  }).catch(async (error: unknown) => {
    // The next kit at this place finds its ports free.
    await kit.stop();
    // What it said at its end may be read behind its exit.
    await isRead;
    throw new Error(`${String(error)}\n${output}`);
  });
  return kit;
}

async function isReady(kit: RunningKit): Promise<boolean> {
  if (kit.process.exitCode !== null) throw new Error(`the kit ended:\n${kit.output()}`);
  for (const name of ["sidecarOnline", "sidecarOffline", "depositApi", "withdrawalApi"] as const) {
    try {
      const answer = await fetch(`${kit.url(name)}/ready`, { signal: AbortSignal.timeout(30_000) });
      if (answer.status !== 200) return false;
    } catch {
      return false; // Not listening yet.
    }
  }
  return true;
}

/** Whether the exchange side listens, ready or not. */
async function isAlive(kit: RunningKit): Promise<boolean> {
  if (kit.process.exitCode !== null) throw new Error(`the kit ended:\n${kit.output()}`);
  const alive = (["depositApi", "withdrawalApi"] as const).map((name) =>
    fetch(`${kit.url(name)}/health`).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  return (await Promise.all(alive)).every(Boolean);
}

/** JSON answer of one of the kit's own APIs. */
export interface ApiAnswer {
  readonly status: number;
  // The tests look into answers of many shapes; expect() checks what matters.
  readonly body: Record<string, unknown>;
}

/** Calls the deposit or withdrawal API with the kit's key. */
export async function callApi(
  kit: RunningKit,
  name: "depositApi" | "withdrawalApi",
  request: {
    readonly path: string;
    readonly body?: unknown;
    readonly headers?: Record<string, string>;
  },
): Promise<ApiAnswer> {
  const answer = await fetch(`${kit.url(name)}${request.path}`, {
    method: request.body === undefined ? "GET" : "POST",
    headers: {
      Authorization: `Bearer ${kit.key("api.key")}`,
      "Content-Type": "application/json",
      ...request.headers,
    },
    ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

/** Runs `causeway COMMAND` on the kit's home and returns what it printed. */
export async function runCauseway(
  kit: Pick<RunningKit, "home">,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const main = path.join(await compiledFolder(), "cli", "main.js");
  const child = spawn(process.execPath, [main, ...args, "--home", kit.home], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stdout, stderr };
}

/**
 * What `causeway status --json` says once all is ready: a part that a busy machine lets answer in no 3 s
 * counts as silent, and whoever is told so looks again.
 */
export function readyStatus(kit: Pick<RunningKit, "home">) {
  return untilReady(() => runCauseway(kit, ["status", "--json"]));
}

/** What `causeway doctor` says once nothing has failed: its checks ask the parts as status does. */
export function readyDoctor(kit: Pick<RunningKit, "home">, flags: readonly string[] = []) {
  return untilReady(() => runCauseway(kit, ["doctor", ...flags]));
}

async function untilReady(ask: () => ReturnType<typeof runCauseway>) {
  let answer = await ask();
  await until(async () => answer.code === 0 || (answer = await ask()).code === 0, {
    timeoutMs: 60_000,
    what: "every part answers",
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${answer.stdout}${answer.stderr}`);
  });
  return answer;
}
