/**
 * One connection of its own, for what a pool cannot do: locks that last as long as it does, and COPY
 * in both directions.
 */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Client } from "pg";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import type { Logger } from "../process/logger.js";
import type { CopyRows } from "./copy-rows.js";
import { KEEP_ALIVE, setSession } from "./session-settings.js";
import type { Sql } from "./sql.js";
import { assertCommitted, SqlError, toSqlError } from "./sql-errors.js";

/** Statements of a transaction, and COPY into it. */
export interface CopySql extends Sql {
  /**
   * Appends rows to a table.
   * @param target the table, of this program and never of a client
   */
  copyIn(target: string, rows: CopyRows): Promise<void>;
}

/** An open connection. */
export interface SqlSession extends Sql {
  /** Runs `work` between BEGIN and COMMIT; rolls back when it throws. Never repeated. */
  transaction<T>(work: (tx: CopySql) => Promise<T>): Promise<T>;
  /** Takes a lock that lasts as long as the connection; false while somebody else has it. */
  tryLock(key: bigint): Promise<boolean>;
  /** The bytes of a `COPY ... TO STDOUT`, as they come; the reader's pace is the server's. */
  copyOut(statement: string): Readable;
  close(): Promise<void>;
}

/** What `openSqlSession` needs. */
export interface SqlSessionOptions {
  /** Holds a password; never logged. */
  readonly url: string;
  /** Shown in pg_stat_activity. */
  readonly applicationName: string;
  readonly log: Logger;
}

/** Time to get a connection. */
const CONNECT_TIMEOUT_MS = 10_000;

/** A writer that was stopped in a transaction for a minute loses it, and with the connection its locks. */
const IDLE_IN_TRANSACTION_MS = 60_000;

/** Connects. @throws SqlError */
export async function openSqlSession(options: SqlSessionOptions): Promise<SqlSession> {
  const client = new Client({
    connectionString: options.url,
    application_name: options.applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    ...KEEP_ALIVE,
  });
  const session = new ClientSession(client, options.log);
  try {
    await client.connect();
    await setSession(client, IDLE_IN_TRANSACTION_MS);
  } catch (error) {
    void client.end().catch(() => undefined);
    throw toSqlError(error);
  }
  return session;
}

class ClientSession implements SqlSession {
  constructor(
    private readonly client: Client,
    log: Logger,
  ) {
    client.on("error", (error) => {
      log.warn({ reason: error.message }, "database connection lost");
    });
  }

  async query<Row>(text: string, parameters: readonly unknown[] = []): Promise<Row[]> {
    try {
      const { rows } = await this.client.query(text, [...parameters]);
      return rows as Row[];
    } catch (error) {
      throw toSqlError(error);
    }
  }

  async tryLock(key: bigint): Promise<boolean> {
    const [row] = await this.query<{ locked: boolean }>(
      "SELECT pg_try_advisory_lock($1) AS locked",
      [key],
    );
    return row?.locked === true;
  }

  async transaction<T>(work: (tx: CopySql) => Promise<T>): Promise<T> {
    await this.query("BEGIN ISOLATION LEVEL READ COMMITTED");
    try {
      const result = await work({
        query: (text, parameters) => this.query(text, parameters),
        copyIn: (target, rows) => this.copyIn(target, rows),
      });
      await this.commit();
      return result;
    } catch (error) {
      await this.query("ROLLBACK").catch((ending: unknown) => {
        if (!(ending instanceof SqlError)) throw ending;
      });
      throw error;
    }
  }

  private async commit(): Promise<void> {
    try {
      const { command } = await this.client.query("COMMIT");
      assertCommitted(command);
    } catch (error) {
      throw toSqlError(error);
    }
  }

  copyOut(statement: string): Readable {
    return this.client.query(copyTo(statement));
  }

  async close(): Promise<void> {
    await this.client.end();
  }

  async copyIn(target: string, rows: CopyRows): Promise<void> {
    if (rows.isEmpty) return;
    try {
      const stream = this.client.query(
        copyFrom(`COPY ${target} (${rows.names}) FROM STDIN (FORMAT binary)`),
      );
      await pipeline(Readable.from(rows.pieces()), stream);
    } catch (error) {
      throw toSqlError(error);
    }
  }
}
