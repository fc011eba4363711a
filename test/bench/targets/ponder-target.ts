/**
 * The indexer's peer: Ponder from npm over one ERC-20, on the same chain and the same database
 * server. It is installed when it is wanted, with the versions of its lock, because nothing else of
 * the project needs its 200 packages.
 */
import { execFile } from "node:child_process";
import fs from "node:fs";
import { totalmem } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import { Client } from "pg";
import type { Address } from "../../../chain/address.js";
import { errorMessage } from "../../../chain/errors.js";
import { cloneFolder } from "../../../cli/home/home.js";
import { freePort } from "../../helpers/ports.js";
import { until } from "../../helpers/until.js";
import { startProcess } from "../processes.js";

/** A cold install over a slow line. */
const INSTALL_TIMEOUT_MS = 600_000;

/** Time for it to index everything; ours needs a minute and a half for the longest chain. */
const INDEX_TIMEOUT_MS = 600_000;

/** Half of the memory: with Node's own bound it ends at blocks of 12,000 events. */
const HEAP_MIB = Math.floor(totalmem() / 2 ** 21);

/** Time between two looks whether it has the chain. */
const LOOK_MS = 50;

const SCHEMA = "ponder";

/** What it is to index. */
export interface PonderTask {
  readonly rpcUrl: string;
  /** Owner's URL of the database. */
  readonly databaseUrl: string;
  readonly token: Address;
  /** Transfers of the token that the chain has. */
  readonly events: number;
}

/** What it did. */
export interface PonderRun {
  readonly version: string;
  readonly events: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** Accounts, in small letters, that have a balance above 0. */
  readonly holders: ReadonlyMap<string, bigint>;
}

/** Installs Ponder once per version of its lock; undefined, with the reason said, where that fails. */
export async function installPonder(say: (line: string) => void): Promise<string | undefined> {
  const from = path.join(cloneFolder(), "test", "fixtures", "ponder");
  const folder = path.join(cloneFolder(), ".cache", "ponder");
  const done = path.join(folder, "installed.json");
  const lock = fs.readFileSync(path.join(from, "package-lock.json"), "utf8");
  const isThere = fs.existsSync(done) && fs.readFileSync(done, "utf8") === lock;
  fs.cpSync(from, folder, { recursive: true });
  if (isThere) return folder;
  say("installing Ponder, which is not part of the project");
  try {
    const options = { cwd: folder, timeout: INSTALL_TIMEOUT_MS };
    // Not `npm ci`: it refuses a lock without the optional packages of every other platform.
    await promisify(execFile)("npm", ["install", "--no-audit", "--no-fund"], options);
  } catch (error) {
    say(`NOT COMPARED with Ponder, which cannot be installed: ${errorMessage(error)}`);
    return undefined;
  }
  fs.writeFileSync(done, lock);
  return folder;
}

/**
 * Starts it on an empty schema and waits until it has every transfer. It calls itself ready with what was
 * final when it began: the newest blocks come behind that.
 */
export async function runPonder(folder: string, task: PonderTask): Promise<PonderRun> {
  const port = await freePort();
  const startedMs = performance.now();
  const ponder = await startProcess({
    name: "Ponder",
    command: process.execPath,
    args: [
      `--max-old-space-size=${HEAP_MIB}`,
      path.join(folder, "node_modules", "ponder", "dist", "esm", "bin", "ponder.js"),
      "start",
      `--schema=${SCHEMA}`,
      `--port=${port}`,
      "--hostname=127.0.0.1",
      "--log-level=warn",
    ],
    // It writes files of its own where it runs.
    cwd: folder,
    env: {
      RPC_URL: task.rpcUrl,
      DATABASE_URL: task.databaseUrl,
      TOKEN: task.token,
      PONDER_TELEMETRY_DISABLED: "true",
    },
    isReady: async () => (await fetch(`http://127.0.0.1:${port}/health`)).ok,
  });
  const client = new Client({ connectionString: task.databaseUrl });
  try {
    await client.connect();
    const isThere = async () => {
      const isReady = (await fetch(`http://127.0.0.1:${port}/ready`)).ok;
      if (isReady && (await transfersIn(client)) >= task.events) return true;
      // As for ours: who is measured shall not be busy with answers.
      await setTimeout(LOOK_MS);
      return false;
    };
    await until(isThere, { timeoutMs: INDEX_TIMEOUT_MS, what: "Ponder has the chain" });
    const seconds = (performance.now() - startedMs) / 1_000;
    const cpuSeconds = ponder.cpuSeconds() ?? 0;
    return { version: versionOf(folder), seconds, cpuSeconds, ...(await result(client)) };
  } finally {
    await client.end();
    await ponder.stop();
  }
}

function versionOf(folder: string): string {
  const manifest = path.join(folder, "node_modules", "ponder", "package.json");
  return (JSON.parse(fs.readFileSync(manifest, "utf8")) as { version: string }).version;
}

async function transfersIn(client: Client): Promise<number> {
  const { rows } = await client.query(`SELECT count(*)::integer AS n FROM ${SCHEMA}.transfer`);
  return Number(rows[0].n);
}

async function result(client: Client): Promise<Pick<PonderRun, "events" | "holders">> {
  const { rows } = await client.query(
    `SELECT address, balance::text AS balance FROM ${SCHEMA}.account WHERE balance > 0`,
  );
  const holders = rows.map(
    ({ address, balance }) => [String(address).toLowerCase(), BigInt(balance)] as const,
  );
  return { events: await transfersIn(client), holders: new Map(holders) };
}
