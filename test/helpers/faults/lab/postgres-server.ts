/** One durable PostgreSQL server with a home of its own, as in production, and base copies of it. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Client } from "pg";
import { errorCode } from "../../../../chain/errors.js";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../../../cli/postgres/embedded-postgres.js";
import { postgresPasswordPath } from "../../../../runtime/config/service-urls.js";
import { freePort } from "../../ports.js";
import { silentLog } from "../../services/ledger.js";

/**
 * What a base copy leaves out: files of the running server, and contents of folders that a server
 * fills anew; its log comes over the stream.
 */
const NOT_COPIED = new Set(["postmaster.pid", "postmaster.opts", "standby.signal"]);
const COPIED_EMPTY = new Set(["pg_wal", "pg_replslot", "pg_stat_tmp", "pg_notify", "pg_subtrans"]);

/** The slot that keeps the log which a standby has not got yet. */
const SLOT = "standby";

/** A server; its port stays the same over all starts. */
export class PostgresServer {
  readonly #home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-postgres-"));
  #running: EmbeddedPostgres | undefined;

  private constructor(readonly port: number) {
    // mkdtemp closes the folder; the server's account must pass through it.
    fs.chmodSync(this.#home, 0o711);
  }

  /** One that does not run yet, on a free port. */
  static async make(): Promise<PostgresServer> {
    return new PostgresServer(await freePort());
  }

  get running(): EmbeddedPostgres {
    if (this.#running === undefined) throw new Error("PostgreSQL was never started");
    return this.#running;
  }

  /** URL of a superuser on a database of this server. */
  urlOf(database: string): string {
    const url = new URL(this.running.url);
    url.username = "postgres";
    url.pathname = `/${database}`;
    return url.href;
  }

  async start(settings: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#running = await startEmbeddedPostgres({
      home: this.#home,
      port: this.port,
      log: silentLog,
      signal: new AbortController().signal,
      settings,
    });
  }

  /** `kill -9` of the server, unless it is gone; its backends end by themselves. */
  async kill(): Promise<void> {
    const { pid, exited } = this.running;
    if (fs.existsSync(`/proc/${pid}`)) process.kill(pid, "SIGKILL");
    await exited;
  }

  /** Statements of a superuser, one after the other. @returns the rows of the last one */
  async ask<Row extends object>(...statements: readonly string[]): Promise<Row[]> {
    const client = new Client({ connectionString: this.urlOf("postgres") });
    await client.connect();
    try {
      let rows: Row[] = [];
      for (const statement of statements) rows = (await client.query<Row>(statement)).rows;
      return rows;
    } finally {
      await client.end();
    }
  }

  /**
   * A standby of this server, made from a base copy while it works; it follows over `port`, which
   * leads here. There is no pg_basebackup among the embedded programs.
   */
  async standby(port: number): Promise<PostgresServer> {
    const standby = await PostgresServer.make();
    const client = new Client({ connectionString: this.urlOf("postgres") });
    await client.connect();
    try {
      // Where an earlier standby took over, or was lost, its slot is of no use any more.
      await client.query(
        `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active`,
      );
      await client.query(`SELECT pg_create_physical_replication_slot('${SLOT}', true)`);
      await client.query(`SELECT pg_backup_start('standby', true)`);
      await copyCluster(this.#cluster, standby.#cluster);
      const { rows } = await client.query<{ labelfile: string }>(
        `SELECT labelfile FROM pg_backup_stop(false)`,
      );
      fs.writeFileSync(path.join(standby.#cluster, "backup_label"), rows[0]?.labelfile ?? "");
    } finally {
      await client.end();
    }
    fs.writeFileSync(path.join(standby.#cluster, "standby.signal"), "");
    fs.mkdirSync(path.dirname(postgresPasswordPath(standby.#home)), { mode: 0o700 });
    fs.copyFileSync(postgresPasswordPath(this.#home), postgresPasswordPath(standby.#home));
    const { password } = new URL(this.running.url);
    await standby.start({
      primary_conninfo: `host=127.0.0.1 port=${port} user=postgres password=${password}`,
      primary_slot_name: SLOT,
    });
    return standby;
  }

  async remove(): Promise<void> {
    await this.#running?.stop();
    fs.rmSync(this.#home, { recursive: true, force: true });
  }

  get #cluster(): string {
    return path.join(this.#home, "data", "postgres");
  }
}

/** Copies what a server works on; files may go, grow and be half written meanwhile. */
async function copyCluster(from: string, to: string): Promise<void> {
  fs.mkdirSync(to, { recursive: true, mode: 0o711 });
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (NOT_COPIED.has(entry.name)) continue;
    if (!entry.isDirectory()) {
      await fs.promises.copyFile(source, target).catch((error: unknown) => {
        if (errorCode(error) !== "ENOENT") throw error;
      });
    } else if (COPIED_EMPTY.has(entry.name)) {
      fs.mkdirSync(target, { mode: 0o700 });
      if (entry.name === "pg_wal") fs.mkdirSync(path.join(target, "archive_status"));
    } else {
      await copyCluster(source, target);
    }
  }
}
