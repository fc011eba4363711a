/**
 * A PostgreSQL of one test, durable as in production: killed, out of space, started again, and
 * replaced by a standby that takes over.
 */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { until } from "../../until.js";
import { TcpProxy } from "../proxy/tcp-proxy.js";
import { PostgresServer } from "./postgres-server.js";

/** A base copy of a cluster is started within it on a busy machine. */
const FOLLOWS_TIMEOUT_MS = 60_000;

/** A standby, and the way of its stream. */
interface Standby {
  readonly server: PostgresServer;
  readonly stream: TcpProxy;
}

/** The server that counts, with its standby; another one counts after each failover. */
export class OwnPostgres {
  #standby: Standby | undefined;
  #former: PostgresServer | undefined;

  private constructor(private server: PostgresServer) {}

  static async start(): Promise<OwnPostgres> {
    const postgres = new OwnPostgres(await PostgresServer.make());
    await postgres.start();
    return postgres;
  }

  /** Of the server that counts now. */
  get port(): number {
    return this.server.port;
  }

  /** URL of a superuser on a database of the server that counts now. */
  urlOf(database: string): string {
    return this.server.urlOf(database);
  }

  start(): Promise<void> {
    return this.server.start();
  }

  /** `kill -9` of the server, unless it is gone; its backends end by themselves. */
  kill(): Promise<void> {
    return this.server.kill();
  }

  /**
   * Gives the server a standby that has all of it.
   * @param isSynchronous true lets no commit be answered from now on that the standby has not
   */
  async follow({ isSynchronous }: { readonly isSynchronous: boolean }): Promise<void> {
    const stream = await TcpProxy.start({ host: "127.0.0.1", port: this.port });
    const server = await this.server.standby(stream.port);
    this.#standby = { server, stream };
    if (isSynchronous) await this.#nameStandbys("*");
    const isFollowing = async () => {
      const rows = await this.server.ask(
        `SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'
            AND (sync_state = 'sync') = ${isSynchronous} AND flush_lsn >= pg_current_wal_lsn()`,
      );
      return rows.length > 0;
    };
    await until(isFollowing, { timeoutMs: FOLLOWS_TIMEOUT_MS, what: "the standby follows" });
  }

  /** The standby gets nothing any more, and nobody waits for it. */
  async leaveBehind(): Promise<void> {
    await this.#standby?.stream.refuse();
  }

  /** `kill -9` of the server; its standby counts from now on, on another port. */
  async failOver(): Promise<void> {
    const standby = this.#standby;
    if (standby === undefined) throw new Error("there is no standby");
    await this.server.kill();
    await standby.stream.close();
    await standby.server.ask(`SELECT pg_promote(true, 60)`);
    await this.#former?.remove();
    this.#former = this.server;
    this.server = standby.server;
    this.#standby = undefined;
  }

  /** The server that was killed comes back, alone, and takes commits. @returns its port */
  async reviveFormer(): Promise<number> {
    const former = this.#former;
    if (former === undefined) throw new Error("nothing took over");
    await former.start({ synchronous_standby_names: "" });
    return former.port;
  }

  /** Ends it again. */
  async killFormer(): Promise<void> {
    await this.#former?.kill();
  }

  /**
   * From now on no file of this life of the server can grow beyond this size, as on a disk that is
   * full: its log first, so that it may end by itself.
   */
  limitFiles(sizeBytes: number): void {
    // Only who owns a process may do this to it, and the server's account is another than root.
    const { uid, gid } = fs.statSync(`/proc/${this.server.running.pid}`);
    for (const pid of this.#processIds()) {
      const words = ["--pid", String(pid), `--fsize=${sizeBytes}:unlimited`];
      const { status, stderr } = spawnSync("prlimit", words, { uid, gid, encoding: "utf8" });
      if (status !== 0 && fs.existsSync(`/proc/${pid}`)) throw new Error(`prlimit: ${stderr}`);
    }
  }

  /** Copies a database as it stands, or puts such a copy in its place; nobody may use either. */
  async replace(target: string, source: string): Promise<void> {
    await this.server.ask(
      `DROP DATABASE IF EXISTS ${target} WITH (FORCE)`,
      `CREATE DATABASE ${target} TEMPLATE ${source}`,
    );
  }

  async remove(): Promise<void> {
    await this.#standby?.stream.close();
    for (const server of [this.#standby?.server, this.#former, this.server]) await server?.remove();
  }

  /** Which standbys commits wait for: `*` for any, none where it is empty. */
  async #nameStandbys(names: string): Promise<void> {
    await this.server.ask(
      `ALTER SYSTEM SET synchronous_standby_names = '${names}'`,
      `SELECT pg_reload_conf()`,
    );
  }

  #processIds(): number[] {
    const { pid } = this.server.running;
    const children = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return [pid, ...children.split(" ").filter(Boolean).map(Number)];
  }
}
