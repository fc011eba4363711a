/**
 * The guardian's own process: it holds a pipe from the supervisor. When the pipe closes, the
 * supervisor is gone, and every process it had named is asked to end and then killed.
 * Its arguments, and after them lines on stdin: "watch <pid> <signal> <startTicks|->", "forget <pid>", "quit".
 * Plain JavaScript, because it must run from the sources and from dist/ alike.
 */
import { readdirSync, readFileSync } from "node:fs";

/** The contract gives orphans 5 s; what still runs after this is killed. */
const GRACE_MS = 3_500;
const POLL_MS = 50;

/** pid -> { signal, startTicks } */
const watched = new Map();
let rest = "";

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => {});
}
process.argv.slice(2).forEach(obey);
process.stdin.setEncoding("utf8");
process.stdin.on("data", (text) => {
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  lines.forEach(obey);
});
process.stdin.on("end", () => void endAll());
process.stdin.on("error", () => void endAll());

function obey(line) {
  const [word, pid, signal, startTicks] = line.split(" ");
  if (word === "watch") {
    watched.set(Number(pid), { signal, startTicks });
  } else if (word === "forget") {
    watched.delete(Number(pid));
  } else if (word === "quit") {
    process.exit(0);
  }
}

async function endAll() {
  for (const [pid, { signal }] of watched) {
    send(pid, signal);
  }
  const deadlineMs = performance.now() + GRACE_MS;
  while (performance.now() < deadlineMs && [...watched.keys()].some(isAlive)) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  // With what it has made: of a database server that hangs, a part would keep the next one from starting.
  for (const [pid, child] of childrenOf([...watched.keys()].filter(isAlive))) {
    watched.set(pid, child);
  }
  for (const pid of watched.keys()) {
    send(pid, "SIGKILL");
  }
  process.exit(0);
}

/** Only the very process that was named gets a signal: process ids are reused. */
function send(pid, signal) {
  try {
    if (isAlive(pid)) {
      process.kill(pid, signal);
    }
  } catch {
    watched.delete(pid);
  }
}

function isAlive(pid) {
  const expected = watched.get(pid)?.startTicks;
  try {
    if (expected === "-") {
      return process.kill(pid, 0);
    }
    const fields = readStat(pid);
    return fields[0] !== "Z" && fields[19] === expected;
  } catch {
    return false;
  }
}

/** Entries for `watched` of the running processes that these have made; none where there is no /proc. */
function childrenOf(pids) {
  try {
    return readdirSync("/proc").flatMap((name) => {
      const fields = /^[0-9]+$/.test(name) ? readStatIfPresent(name) : undefined;
      const isChild = fields !== undefined && pids.includes(Number(fields[1]));
      return isChild ? [[Number(name), { startTicks: fields[19] }]] : [];
    });
  } catch {
    return [];
  }
}

function readStatIfPresent(pid) {
  try {
    return readStat(pid);
  } catch {
    return undefined; // Ended in between.
  }
}

/** State, parent's id and, as number 19, start time of a process; the name before them may hold anything. */
function readStat(pid) {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}
