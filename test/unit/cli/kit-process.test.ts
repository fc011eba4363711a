import { afterEach, describe, expect, it } from "@jest/globals";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHomeFolders, homePaths } from "../../../cli/home.js";
import { lockHome } from "../../../cli/home-lock.js";
import { runKitProcess } from "../../../cli/kit-process.js";
import type { Environment } from "../../../runtime/config.js";

const folders: string[] = [];
const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newHome(): string {
  const folder = mkdtempSync(join(tmpdir(), "causeway-start-"));
  folders.push(folder);
  return join(folder, "home");
}

async function takePort(): Promise<number> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  return (server.address() as AddressInfo).port;
}

/** Runs `npm start` with the arguments, in this process; every case here ends before any child. */
async function start(
  argv: readonly string[],
  env: Environment = {},
): Promise<{ readonly exitCode: number; readonly out: string; readonly err: string }> {
  const out: string[] = [];
  const err: string[] = [];
  const exitCode = await runKitProcess(argv, {
    env,
    print: (line) => out.push(line),
    printError: (line) => err.push(line),
    output: { isTty: false, columns: 80, write: (text) => out.push(text) },
    signal: new AbortController().signal,
  });
  return { exitCode, out: out.join("\n"), err: err.join("\n") };
}

describe("npm start, before anything is started", () => {
  it("explains itself", async () => {
    const { exitCode, out } = await start(["--help"]);
    expect(exitCode).toBe(0);
    for (const flag of ["--home", "--port-offset", "--once", "--no-demo"]) {
      expect(out).toContain(flag);
    }
  });

  it("refuses a home that another kit holds and names it", async () => {
    const home = newHome();
    const paths = homePaths(home);
    await createHomeFolders(paths);
    const lock = await lockHome(paths.lock, home);
    const { exitCode, err } = await start(["--once", "--home", home]);
    expect(exitCode).toBe(1);
    expect(err).toContain(`already running on the home ${home} (process ${process.pid})`);
    await lock.release();
  });

  it("names every taken port with its part, starts nothing and writes no key", async () => {
    const home = newHome();
    const [first, second] = [await takePort(), await takePort()];
    const env = {
      CAUSEWAY_APP_JSON_RPC_ADDRESS: `127.0.0.1:${first}`,
      CAUSEWAY_WORKER_API_LISTEN: `127.0.0.1:${second}`,
    };
    const argv = ["--once", "--home", home, "--port-offset", "31000"];
    const { exitCode, err } = await start(argv, env);
    expect(exitCode).toBe(1);
    expect(err).toContain(`port ${first} (wanted by the node's JSON-RPC) is taken`);
    expect(err).toContain(`port ${second} (wanted by the withdrawal API) is taken`);
    expect(readdirSync(join(home, "config"))).toEqual([]);
    expect(readdirSync(home)).not.toContain("kit.lock");
  });

  it("reports all wrong settings at once", async () => {
    const home = newHome();
    const { exitCode, err } = await start(["--once", "--home", home, "--port-offset", "many"], {
      CAUSEWAY_APP_PRUNING: "sometimes",
      CAUSEWAY_SIDECAR_NODE_URL: "not a url",
      DATABASE_URL: "mysql://user:hush@db/x",
      REDIS_URL: "localhost",
    });
    expect(exitCode).toBe(1);
    expect(err).toContain('--port-offset = "many"');
    expect(err).toContain("CAUSEWAY_APP_PRUNING");
    expect(err).toContain("CAUSEWAY_SIDECAR_NODE_URL");
    expect(err).toContain("DATABASE_URL = *** (allowed: a URL starting with postgres:// or");
    expect(err).toContain("REDIS_URL = *** (allowed: a URL starting with redis:// or");
    expect(err).not.toContain("hush");
    expect(existsSync(home)).toBe(false);
  });

  it("names folder and cause of a home that cannot be made", async () => {
    const { exitCode, err } = await start(["--once", "--home", "/proc/causeway"]);
    expect(exitCode).toBe(1);
    expect(err).toMatch(/^causeway: Cannot create the folder \/proc\/causeway: .+\.$/);
  });

  it("refuses arguments that it does not know", async () => {
    const { exitCode, err } = await start(["--tiwce"]);
    expect(exitCode).toBe(1);
    expect(err).toContain("--tiwce");
  });
});
