/** The servers of `npm run test:services` never outlive the run that started them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { firstWords } from "../../helpers/processes/endings.js";
import { until } from "../../helpers/until.js";

const { href } = pathToFileURL(resolve("bin", "testing", "private-services.mjs"));

/** Listens on the port that it is given, as PostgreSQL and Redis are given theirs; never ends by itself. */
const SERVER = `#!${process.execPath}
const words = process.argv.join(" ");
const port = Number(/(?:port=|--port )([0-9]+)/.exec(words)[1]);
require("node:net").createServer((socket) => socket.destroy()).listen(port, "127.0.0.1");
`;

/** Starts, and never takes a connection. */
const SILENT = `#!${process.execPath}
setInterval(() => undefined, 1000);
`;

/** In a run: its start of Redis is the last thing that it does. */
const KILLED_BY_REDIS = `
const { default: childProcess } = await import("node:child_process");
const { spawn } = childProcess;
childProcess.spawn = (program, words, options) => {
  const child = spawn(program, words, options);
  if ([program, ...words].some((word) => word.endsWith("/redis-server"))) {
    process.kill(process.pid, "SIGKILL");
  }
  return child;
};
(await import("node:module")).syncBuiltinESMExports();
`;

describe("private services", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "causeway-fakes-"));
    // Servers of root's runs are another account's.
    chmodSync(folder, 0o755);
    write("initdb", "#!/bin/sh\nexit 0\n");
    write("postgres", SERVER);
  });
  afterEach(() => {
    for (const pid of running()) process.kill(pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });

  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), 0o755);
  };

  /** Process ids of the servers, and of what becomes one. */
  function running(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^[0-9]+$/.test(name))
      .filter((pid) => {
        try {
          const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
          return words.some((word) => word.startsWith(`${folder}/`));
        } catch {
          return false; // Ended in between.
        }
      })
      .map(Number);
  }

  /**
   * A run that starts them and says so, and then does nothing; "stop" ends them in order.
   * @param first what it does before, in its own text
   */
  function startRun(first = "") {
    const programs = { postgres: folder, redis: join(folder, "redis-server") };
    const script = `${first}
      const { startPrivateServices } = await import(${JSON.stringify(href)});
      const say = () => undefined;
      const { stop } = await startPrivateServices({ say, programs: ${JSON.stringify(programs)} });
      process.stdin.once("data", () => stop().then(() => process.exit(0)));
      console.log("started");`;
    return spawn(process.execPath, ["--input-type=module", "-e", script]);
  }

  it.each(["SIGKILL", "SIGHUP", "SIGTERM"] as const)(
    "end with a run that %s ends",
    async (signal) => {
      write("redis-server", SERVER);
      const run = startRun();
      await firstWords(run);
      expect(running()).toHaveLength(2);
      run.kill(signal);
      await until(() => running().length === 0, { timeoutMs: 10_000, what: "no server is left" });
    },
  );

  it("end with a run that is killed while they start", async () => {
    write("redis-server", SILENT);
    const run = startRun();
    await until(() => running().length === 2, { timeoutMs: 20_000, what: "both were started" });
    run.kill("SIGKILL");
    await until(() => running().length === 0, { timeoutMs: 10_000, what: "no server is left" });
  });

  it("end with a run that is killed before it has said who was started", async () => {
    write("redis-server", SILENT);
    const run = startRun(KILLED_BY_REDIS);
    expect(await once(run, "close")).toEqual([null, "SIGKILL"]);
    await until(() => running().length === 0, { timeoutMs: 10_000, what: "no server is left" });
  });

  it("end when they are stopped, and with them all that the run had", async () => {
    write("redis-server", SERVER);
    const run = startRun();
    await firstWords(run);
    run.stdin.write("stop\n");
    expect(await once(run, "close")).toEqual([0, null]);
    expect(running()).toEqual([]);
  });
});
