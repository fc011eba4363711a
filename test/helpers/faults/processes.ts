/** The processes of a kit as a hostile operator sees them: found by name, killed, frozen. */
import fs from "node:fs";
import path from "node:path";
import type { RunningKit } from "../kit.js";
import { until } from "../until.js";

/** Processes that the kit supervises, the database's server among them. */
export const KIT_PROCESSES = [
  "node",
  "sidecar-online",
  "sidecar-offline",
  "deposit-watcher",
  "withdrawal-worker",
  "postgres",
] as const;

/** One of `KIT_PROCESSES`. */
export type KitProcessName = (typeof KIT_PROCESSES)[number];

/** Time for a killed process to be really gone: the kernel frees its memory first. */
const GONE_TIMEOUT_MS = 240_000;

/** Time for the supervisor to bring a child back on a busy machine. */
const BACK_TIMEOUT_MS = 240_000;

/** Process id of a part at this moment; undefined while it is down. */
export function pidOf(home: string, name: KitProcessName): number | undefined {
  const pid = name === "postgres" ? postmasterPid(home) : recordedPid(home, name);
  return pid !== undefined && isAlive(pid) ? pid : undefined;
}

/** Process id of a part that has to be up. */
export function livingPid(home: string, name: KitProcessName): number {
  const pid = pidOf(home, name);
  if (pid === undefined) throw new Error(`${name} does not run`);
  return pid;
}

/** `kill -9` of one part. @returns the pid that was killed */
export function killNow(home: string, name: KitProcessName): number {
  const pid = livingPid(home, name);
  process.kill(pid, "SIGKILL");
  return pid;
}

/** How often the supervisor saw a part die by SIGKILL since this kit was started. */
export function deathsBySigkill(kit: RunningKit, name: KitProcessName): number {
  return kit.output().split(`${name}: it was ended by SIGKILL; starting it again`).length - 1;
}

/** Resolves when a part runs under another pid than the given one. */
export async function untilReplaced(
  home: string,
  name: KitProcessName,
  formerPid: number,
): Promise<void> {
  await until(() => ![undefined, formerPid].includes(pidOf(home, name)), {
    timeoutMs: BACK_TIMEOUT_MS,
    what: `${name} (formerly ${formerPid}) runs again`,
  });
}

/** Resolves when every part of the kit runs and says that it is ready. */
export async function untilAllReady(kit: RunningKit): Promise<void> {
  await until(() => isAllReady(kit), {
    timeoutMs: BACK_TIMEOUT_MS,
    what: "every part of the kit is ready again",
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${kit.output().slice(-2_000)}`);
  });
}

/** `kill -9` of the supervisor, its guardian, every child and the database, in one moment. */
export async function killEverything(kit: RunningKit): Promise<void> {
  const supervisor = kit.process.pid;
  if (supervisor === undefined) throw new Error("the kit was never started");
  const named = KIT_PROCESSES.flatMap((name) => pidOf(kit.home, name) ?? []);
  const pids = familyOf([supervisor, ...named]);
  for (const pid of pids) killQuietly(pid);
  await until(() => pids.every((pid) => !isAlive(pid)), {
    timeoutMs: GONE_TIMEOUT_MS,
    what: `all of ${pids.join(", ")} are gone`,
  });
}

async function isAllReady(kit: RunningKit): Promise<boolean> {
  if (kit.process.exitCode !== null) throw new Error(`the kit ended:\n${kit.output()}`);
  if (KIT_PROCESSES.some((name) => pidOf(kit.home, name) === undefined)) return false;
  const parts = ["sidecarOnline", "sidecarOffline", "depositApi", "withdrawalApi"] as const;
  for (const part of parts) {
    try {
      const signal = AbortSignal.timeout(10_000);
      const answer = await fetch(`${kit.url(part)}/ready`, { signal });
      await answer.arrayBuffer();
      if (answer.status !== 200) return false;
    } catch {
      return false; // Down, or frozen: that is what is waited out.
    }
  }
  return true;
}

function recordedPid(home: string, name: KitProcessName): number | undefined {
  try {
    const text = fs.readFileSync(path.join(home, "data", "children.json"), "utf8");
    const children = JSON.parse(text) as { name: string; pid: number }[];
    return children.find((child) => child.name === name)?.pid;
  } catch {
    return undefined; // Between two versions of the file, or before the first.
  }
}

function postmasterPid(home: string): number | undefined {
  try {
    const file = path.join(home, "data", "postgres", "postmaster.pid");
    const pid = Number(fs.readFileSync(file, "utf8").split("\n")[0]);
    return Number.isSafeInteger(pid) && pid > 1 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** The given processes and all that descend from them, the guardian and backends included. */
function familyOf(roots: readonly number[]): number[] {
  const parents = new Map<number, number>();
  for (const entry of fs.readdirSync("/proc")) {
    const status = /^[0-9]+$/.test(entry) ? readStatus(Number(entry)) : undefined;
    if (status !== undefined) parents.set(Number(entry), status.parentPid);
  }
  const family = new Set(roots);
  for (let size = -1; size !== family.size; ) {
    size = family.size;
    for (const [pid, parent] of parents) if (family.has(parent)) family.add(pid);
  }
  return [...family];
}

/** A zombie is dead: its parent has only not looked yet. */
function isAlive(pid: number): boolean {
  const status = readStatus(pid);
  return status !== undefined && status.state !== "Z" && status.state !== "X";
}

function readStatus(pid: number): { state: string; parentPid: number } | undefined {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name before it may hold blanks and brackets.
    const [state = "", parent = ""] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state, parentPid: Number(parent) };
  } catch {
    return undefined;
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone already: that is what was wanted.
  }
}
