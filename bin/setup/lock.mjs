/** One start at a time may install or build in a clone; the others wait and then find it done. */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const POLL_MS = 200;

/** A lock folder without owner is just being made, or its maker died at that moment. */
const OWNERLESS_MS = 5_000;

/** How often a waiting start says so; long work is never silent for more than 30 s. */
const REPORT_MS = 10_000;

/**
 * Runs `work` while holding the lock folder; a lock whose owner is gone is taken over.
 * @param {string} path lock folder
 * @param {{say: (text: string) => void}} output
 * @param {() => Promise<T>} work
 * @template T
 */
export async function withLock(path, { say }, work) {
  mkdirSync(dirname(path), { recursive: true });
  const startedMs = performance.now();
  let reports = 0;
  while (!tryLock(path)) {
    const owner = readOwner(path);
    if (isStale(path, owner)) {
      removeStale(path);
      continue;
    }
    if ((performance.now() - startedMs) / REPORT_MS >= reports) {
      reports += 1;
      say(`waiting for process ${owner?.pid ?? "?"}, which installs or builds in this clone`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const release = () => rmSync(path, { recursive: true, force: true });
  process.once("exit", release);
  try {
    return await work();
  } finally {
    process.removeListener("exit", release);
    release();
  }
}

/**
 * Start time of a process in clock ticks; tells a reused process id from the first owner. Here once
 * more, because this file runs before `runtime/process/process-identity.ts` is built.
 */
export function startTicks(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

/** True when a process with this id runs, whoever owns it. */
export function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

function tryLock(path) {
  try {
    mkdirSync(path);
  } catch (error) {
    if (error.code === "EEXIST") {
      return false;
    }
    throw error;
  }
  const owner = { pid: process.pid, startTicks: startTicks(process.pid) };
  writeFileSync(join(path, "owner.json"), JSON.stringify(owner));
  return true;
}

function readOwner(path) {
  try {
    return JSON.parse(readFileSync(join(path, "owner.json"), "utf8"));
  } catch {
    return undefined;
  }
}

function isStale(path, owner) {
  if (owner === undefined) {
    const made = statSync(path, { throwIfNoEntry: false });
    return made !== undefined && Date.now() - made.mtimeMs > OWNERLESS_MS;
  }
  return !isAlive(owner.pid) || startTicks(owner.pid) !== owner.startTicks;
}

/**
 * Renamed before it is removed: of several waiting starts only one can win the rename. Another one may have
 * taken the lock over since it was judged stale, so what was renamed is judged again, and given back if it
 * is held.
 * @param {string} path lock folder
 */
export function removeStale(path) {
  const aside = `${path}.stale-${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (error.code !== "ENOENT") {
      throw error;
    }
    return;
  }
  if (!isStale(aside, readOwner(aside))) {
    giveBack(aside, path);
  }
  rmSync(aside, { recursive: true, force: true });
}

/** Where a third start has made a lock meanwhile, that one stays. */
function giveBack(aside, path) {
  try {
    renameSync(aside, path);
  } catch (error) {
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") {
      throw error;
    }
  }
}
