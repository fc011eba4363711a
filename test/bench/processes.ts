/** Child processes of a benchmark: started, measured, and never left behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** A running child. */
export interface BenchProcess {
  readonly name: string;
  readonly pid: number;
  /** User and system time so far in seconds; undefined where there is no /proc. */
  cpuSeconds(): number | undefined;
  /** Resident memory in MiB; undefined where there is no /proc. */
  memoryMib(): number | undefined;
  /** SIGTERM, SIGKILL after 10 s; resolves when it is gone. */
  stop(): Promise<void>;
}

/** What to start. */
export interface ProcessSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Where it runs; without one, where we do. */
  readonly cwd?: string;
  /** Resolves when it serves; without one, its ready message is awaited. */
  readonly isReady?: () => Promise<boolean>;
}

/** Time for a process to come up on a busy machine. */
const READY_TIMEOUT_MS = 90_000;

/** Time for an orderly stop. */
const STOP_TIMEOUT_MS = 10_000;

/** Ticks of /proc/<pid>/stat per second; 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Lines of output kept to explain a death. */
const KEPT_OUTPUT_CHARACTERS = 4_000;

const running = new Set<ChildProcess>();

process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a child and waits until it is ready. Throws Error with its last words. */
export async function startProcess(spec: ProcessSpec): Promise<BenchProcess> {
  const { isReady } = spec;
  const usesMessage = isReady === undefined;
  const child = spawn(spec.command, [...spec.args], {
    env: { ...process.env, ...spec.env },
    ...(spec.cwd !== undefined && { cwd: spec.cwd }),
    stdio: usesMessage ? ["ignore", "pipe", "pipe", "ipc"] : ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  let output = "";
  const record = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-KEPT_OUTPUT_CHARACTERS);
  };
  child.stdout?.on("data", record);
  child.stderr?.on("data", record);
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => {
      running.delete(child);
      resolve();
    });
  });
  const deadline = new Promise<never>((_resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${spec.name} ${why}:\n${output}`));
    setTimeout(() => fail("is not ready"), READY_TIMEOUT_MS).unref();
    child.once("error", (error) => fail(error.message));
    void ended.then(() => fail("ended"));
  });
  // The later end of a child that was ready is no fault.
  deadline.catch(() => undefined);
  const ready = usesMessage
    ? new Promise<void>((resolve) => child.once("message", () => resolve()))
    : pollReady(isReady);
  await Promise.race([ready, deadline]);
  return toBenchProcess(spec.name, child, ended);
}

function toBenchProcess(name: string, child: ChildProcess, ended: Promise<void>): BenchProcess {
  const pid = child.pid ?? 0;
  return {
    name,
    pid,
    cpuSeconds: () => cpuSecondsOf(pid),
    memoryMib: () => memoryMibOf(pid),
    async stop() {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

async function pollReady(isReady: () => Promise<boolean>): Promise<void> {
  // A server that does not listen yet is not ready; nothing else is lost with the error.
  while (!(await isReady().catch(() => false))) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * User and system time so far, in seconds, of a process and of its children, those that have ended
 * included; undefined where there is no /proc.
 */
export function familyCpuSeconds(parent: number): number | undefined {
  const own = timesOf(parent);
  if (own === undefined) return undefined;
  let ticks = own.ticks + own.endedChildrenTicks;
  for (const name of readdirSync("/proc")) {
    const times = /^[0-9]+$/.test(name) ? timesOf(Number(name)) : undefined;
    if (times?.parent === parent) ticks += times.ticks;
  }
  return ticks / TICKS_PER_SECOND;
}

interface ProcessTimes {
  readonly parent: number;
  readonly ticks: number;
  readonly endedChildrenTicks: number;
}

/** Undefined where there is no /proc, or the process is gone. */
function timesOf(pid: number): ProcessTimes | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const sum = (first: number) => Number(fields[first]) + Number(fields[first + 1]);
    return { parent: Number(fields[1]), ticks: sum(11), endedChildrenTicks: sum(13) };
  } catch {
    return undefined;
  }
}

function cpuSecondsOf(pid: number): number | undefined {
  const times = timesOf(pid);
  return times === undefined ? undefined : times.ticks / TICKS_PER_SECOND;
}

function memoryMibOf(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/status`, "utf8");
    return Math.round(Number(/VmRSS:\s+([0-9]+)/.exec(text)?.[1]) / 1_024);
  } catch {
    return undefined; // Not Linux, or gone.
  }
}
