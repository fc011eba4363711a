/** A PostgreSQL of one test, durable as in production: killed, out of space, started again. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Client } from "pg";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../../../cli/postgres/embedded-postgres.js";
import { freePort } from "../../ports.js";
import { silentLog } from "../../services/ledger.js";

/** The server of one home; its URL stays the same over all starts. */
export class OwnPostgres {
  readonly #home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-postgres-"));
  #server: EmbeddedPostgres | undefined;

  private constructor(readonly port: number) {}

  static async start(): Promise<OwnPostgres> {
    const postgres = new OwnPostgres(await freePort());
    // mkdtemp closes the folder; the server's account must pass through it.
    fs.chmodSync(postgres.#home, 0o711);
    await postgres.start();
    return postgres;
  }

  /** URL of a superuser on a database of this server. */
  urlOf(database: string): string {
    const url = new URL(this.#running.url);
    url.username = "postgres";
    url.pathname = `/${database}`;
    return url.href;
  }

  async start(): Promise<void> {
    this.#server = await startEmbeddedPostgres({
      home: this.#home,
      port: this.port,
      log: silentLog,
      signal: new AbortController().signal,
    });
  }

  /** `kill -9` of the server, unless it is gone; its backends end by themselves. */
  async kill(): Promise<void> {
    const { pid, exited } = this.#running;
    if (fs.existsSync(`/proc/${pid}`)) process.kill(pid, "SIGKILL");
    await exited;
  }

  /**
   * From now on no file of this life of the server can grow beyond this size, as on a disk that is
   * full: its log first, so that it may end by itself.
   */
  limitFiles(sizeBytes: number): void {
    // Only who owns a process may do this to it, and the server's account is another than root.
    const { uid, gid } = fs.statSync(`/proc/${this.#running.pid}`);
    for (const pid of this.#processIds()) {
      const words = ["--pid", String(pid), `--fsize=${sizeBytes}:unlimited`];
      const { status, stderr } = spawnSync("prlimit", words, { uid, gid, encoding: "utf8" });
      if (status !== 0 && fs.existsSync(`/proc/${pid}`)) throw new Error(`prlimit: ${stderr}`);
    }
  }

  /** Copies a database as it stands, or puts such a copy in its place; nobody may use either. */
  async replace(target: string, source: string): Promise<void> {
    const client = new Client({ connectionString: this.urlOf("postgres") });
    await client.connect();
    try {
      await client.query(`DROP DATABASE IF EXISTS ${target} WITH (FORCE)`);
      await client.query(`CREATE DATABASE ${target} TEMPLATE ${source}`);
    } finally {
      await client.end();
    }
  }

  async remove(): Promise<void> {
    await this.#server?.stop();
    fs.rmSync(this.#home, { recursive: true, force: true });
  }

  get #running(): EmbeddedPostgres {
    if (this.#server === undefined) throw new Error("PostgreSQL was never started");
    return this.#server;
  }

  #processIds(): number[] {
    const { pid } = this.#running;
    const children = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return [pid, ...children.split(" ").filter(Boolean).map(Number)];
  }
}
