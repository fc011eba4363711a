/** A PostgreSQL and a Redis of Debian's packages, on ports and folders of their own, for tests. */
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
} from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startTicks } from "../setup/lock.mjs";
import { SetupError } from "../setup/setup-error.mjs";
import { freePort } from "./test-ports.mjs";

/** What ends the kit's own processes when their supervisor is gone. */
const GUARDIAN = fileURLToPath(new URL("../../runtime/process/guardian-main.mjs", import.meta.url));

/** User and group id of `nobody`: PostgreSQL refuses to run as root. */
const NOBODY = 65_534;

/** For `sh -c`: runs what is behind it once a line comes; ends where whoever was to write it is gone. */
const ONCE_TOLD = 'read _ <&3 && exec "$0" "$@" 3<&-';

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;

/**
 * Starts both servers; as root, missing packages are installed with apt-get first.
 * @param {{say: (text: string) => void, programs?: {postgres: string, redis: string}}} options
 * programs: the folder of PostgreSQL's and the path of redis-server; else those of the system
 * @returns the variables that point the tests to them, and `stop`
 * @throws {SetupError}
 */
export async function startPrivateServices({
  say,
  programs = findPrograms() ?? installPrograms(say),
}) {
  const isRoot = process.getuid?.() === 0;
  const account = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const folder = mkdtempSync(join(tmpdir(), "causeway-services-"));
  chmodSync(folder, 0o711);
  const servers = openServers();
  const stop = async () => {
    await servers.end();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const postgresPort = await startPostgres(programs, folder, account, servers);
    const redisPort = await startRedis(programs, folder, account, servers);
    say(`private PostgreSQL on port ${postgresPort}, Redis on port ${redisPort}`);
    return {
      environment: {
        DATABASE_URL_TEST_SERVER: `postgres://postgres@127.0.0.1:${postgresPort}/postgres`,
        // It ends with the run: what tests leave there does, too.
        CAUSEWAY_TEST_SERVER_ENDS: "1",
        REDIS_URL_TEST: `redis://127.0.0.1:${redisPort}/0`,
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Debian keeps the server programs of each major version in a folder of its own. */
function findPrograms() {
  const base = "/usr/lib/postgresql";
  const versions = existsSync(base) ? readdirSync(base).map(Number).filter(Boolean) : [];
  const newest = versions
    .toSorted((left, right) => right - left)
    .map((version) => join(base, String(version), "bin"))
    .find((folder) => existsSync(join(folder, "initdb")));
  const redis = (process.env.PATH ?? "")
    .split(delimiter)
    .concat("/usr/bin", "/usr/local/bin")
    .map((folder) => join(folder, "redis-server"))
    .find((path) => existsSync(path));
  return newest === undefined || redis === undefined ? undefined : { postgres: newest, redis };
}

function installPrograms(say) {
  const advice = "needs Debian's packages postgresql and redis-server";
  if (process.getuid?.() !== 0) {
    throw new SetupError(
      `this ${advice}; install them as root: apt-get install postgresql redis-server`,
    );
  }
  say("installing postgresql and redis-server with apt-get");
  // With this runlevel Debian's scripts do not start the packages' own servers.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const run = (...words) => spawnSync("apt-get", ["-qq", ...words], { env, stdio: "inherit" });
  run("update");
  run("install", "-y", "--no-install-recommends", "postgresql", "redis-server");
  const programs = findPrograms();
  if (programs === undefined) {
    throw new SetupError(`apt-get could not install them; this ${advice}`);
  }
  return programs;
}

async function startPostgres(programs, folder, account, servers) {
  const data = join(folder, "postgres");
  mkdirSync(data, { mode: 0o700 });
  if (account.uid !== undefined) {
    chownSync(data, account.uid, account.gid);
  }
  const options = { ...account, cwd: "/", env: { LC_ALL: "C", TZ: "UTC", PATH: "/usr/bin:/bin" } };
  const made = spawnSync(
    join(programs.postgres, "initdb"),
    ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
    { ...options, encoding: "utf8" },
  );
  if (made.status !== 0) {
    throw new SetupError(`initdb failed: ${made.stderr.trim()}`);
  }
  const port = await freePort();
  const settings = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    `port=${port}`,
    "fsync=off",
  ];
  const flags = settings.flatMap((setting) => ["-c", setting]);
  servers.start(join(programs.postgres, "postgres"), ["-D", data, ...flags], options);
  // Recovery is short here; the port opens when the server takes connections.
  await answersOn(port, "PostgreSQL");
  return port;
}

async function startRedis(programs, folder, account, servers) {
  const data = join(folder, "redis");
  mkdirSync(data, { mode: 0o700 });
  if (account.uid !== undefined) {
    chownSync(data, account.uid, account.gid);
  }
  const port = await freePort();
  const flags = ["--port", String(port), "--bind", "127.0.0.1", "--dir", data, "--save", ""];
  flags.push("--appendonly", "yes", "--maxmemory-policy", "noeviction");
  servers.start(programs.redis, flags, { ...account, cwd: "/" });
  await answersOn(port, "Redis");
  return port;
}

/**
 * Starts servers in sessions of their own, which Ctrl-C does not reach. However this process ends, the
 * guardian ends those that are left: it sees the pipe close. None runs before the guardian is told of it.
 */
function openServers() {
  const guardian = spawn(process.execPath, [GUARDIAN], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  // Where somebody ended it the servers only lose their leash.
  guardian.stdin.on("error", () => undefined);
  guardian.unref();
  guardian.stdin.unref();
  const children = [];
  return {
    start(program, args, options) {
      const child = spawn("/bin/sh", ["-c", ONCE_TOLD, program, ...args], {
        ...options,
        stdio: ["ignore", "ignore", "ignore", "pipe"],
        detached: true,
      });
      children.push(child);
      process.once("exit", () => child.kill("SIGKILL"));
      if (child.pid === undefined) return;
      const [, , , gate] = child.stdio;
      // Who has ended waits for no line.
      gate.on("error", () => undefined);
      const line = `watch ${child.pid} SIGINT ${startTicks(child.pid) ?? "-"}\n`;
      guardian.stdin.write(line, () => gate.end("\n"));
    },
    async end() {
      await Promise.all(children.map(end));
      guardian.stdin.end("quit\n");
    },
  };
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGINT");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(timer);
}

async function answersOn(port, name) {
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (!(await connects(port))) {
    if (performance.now() > deadlineMs) {
      throw new SetupError(`the private ${name} did not start on port ${port}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function connects(port) {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: "127.0.0.1" });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
