/**
 * Embedded servers of tests: their homes, a start in this process or in one of its own, and what runs
 * of them.
 */
import { afterAll, afterEach, beforeAll, beforeEach } from "@jest/globals";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../../../cli/postgres/embedded-postgres.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import {
  childrenOf,
  identifyProcess,
  type ProcessIdentity,
} from "../../../../runtime/process/process-identity.js";
import { freePort } from "../../../helpers/ports.js";
import { compiledFolder } from "../../../helpers/services/services.js";
import { until } from "../../../helpers/until.js";

/** Says nothing. */
export const log = createLogger({ component: "test", level: "silent" });
/** Of who stays. */
export const { signal } = new AbortController();
/** Whether servers run as another account than the tests. */
export const isRoot = process.getuid?.() === 0;

/** The one value of one row. */
export async function queryOne(url: string, text: string): Promise<unknown> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const result = await client.query<{ value: unknown }>(text);
    return result.rows[0]?.value;
  } finally {
    await client.end();
  }
}

/** A folder that the server's account may pass through. */
export function makeHome(): string {
  const folder = mkdtempSync(join(tmpdir(), "causeway-pg-"));
  // mkdtemp closes the folder; the server's account must pass through it.
  chmodSync(folder, 0o711);
  return folder;
}

/** Stops a process that a server has made, as a debugger does: it hears of no end. */
export async function hangPart(pid: number): Promise<ProcessIdentity> {
  const isCheckpointer = (part: ProcessIdentity) =>
    readFileSync(`/proc/${part.pid}/cmdline`, "utf8").includes("checkpointer");
  let part: ProcessIdentity | undefined;
  // It takes its name some time after it was made; others of the server may end meanwhile.
  await until(() => (part = childrenOf(pid).find(isCheckpointer)) !== undefined, {
    timeoutMs: 30_000,
    what: "the server has a checkpointer",
  });
  if (part === undefined) throw new Error("the server has no checkpointer");
  process.kill(part.pid, "SIGSTOP");
  return part;
}

/** Whether the programs that make the cluster of a home are at work. */
export function isBeingMade(home: string): boolean {
  const data = join(home, "data");
  if (!existsSync(data)) return false;
  return readdirSync(data).some((name) => existsSync(join(data, name, "cluster", "base", "1")));
}

/** Command lines of running programs that name a home. */
export function programsIn(home: string): string[] {
  const pids = readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name));
  return pids.map(commandLineOf).filter((line) => line.includes(home));
}

/** Empty where it runs no more, also since a moment ago: of a busy machine some process always ends. */
function commandLineOf(pid: string): string {
  if (identifyProcess(Number(pid)) === undefined) return "";
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch (error) {
    if (identifyProcess(Number(pid)) === undefined) return "";
    throw error;
  }
}

/**
 * A port for each test, and a home with a finished cluster, which tests share that do not look at its making.
 * @param begin takes both at each test's beginning
 * @param homeOf the home of now, which a test may have replaced by its own
 */
export function serversForTests(
  begin: (place: { readonly home: string; readonly port: number }) => void,
  homeOf: () => string,
) {
  let sharedHome: string;
  let port: number;
  const running: EmbeddedPostgres[] = [];

  async function start(options: { home?: string; notices?: string[] } = {}) {
    const server = await startEmbeddedPostgres({
      home: options.home ?? homeOf(),
      port,
      log,
      signal,
      notice: (sentence) => options.notices?.push(sentence),
    });
    running.push(server);
    return server;
  }

  /** Starts the server in a process of its own, which tells the server's id. */
  async function startInKit() {
    const folder = await compiledFolder();
    const script = `
      const { startEmbeddedPostgres } = await import(${JSON.stringify(`${folder}/cli/postgres/embedded-postgres.js`)});
      const { createLogger } = await import(${JSON.stringify(`${folder}/runtime/process/logger.js`)});
      const server = await startEmbeddedPostgres({
        home: ${JSON.stringify(homeOf())}, port: ${port}, signal: new AbortController().signal,
        log: createLogger({ component: "kit", level: "silent" }),
      });
      process.stdout.write(String(server.pid));
    `;
    return spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  beforeAll(() => {
    sharedHome = makeHome();
  });

  afterAll(() => {
    rmSync(sharedHome, { recursive: true, force: true });
  });

  beforeEach(async () => {
    port = await freePort();
    begin({ home: sharedHome, port });
  });

  afterEach(async () => {
    for (const server of running.splice(0)) {
      await server.stop();
    }
    if (homeOf() !== sharedHome) {
      rmSync(homeOf(), { recursive: true, force: true });
    }
  });

  return { start, startInKit };
}
