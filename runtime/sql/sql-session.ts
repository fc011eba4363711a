/**
 * One connection of its own, for what a pool cannot do: locks that last as long as it does, and COPY
 * in both directions.
 */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Client } from "pg";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import type { Logger } from "../process/logger.js";
import { ANSWER_TIMEOUT_MS, answered } from "./answer-time.js";
import { boundParameters } from "./array-parameters.js";
import type { CopyRows } from "./copy-rows.js";
import { WITHOUT_BOUNDS } from "./long-work.js";
import { endConnection } from "./lost-connections.js";
import { CONNECT_TIMEOUT_MS, KEEP_ALIVE, setSession } from "./session-settings.js";
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
  /**
   * The same connection, for what takes long on large tables: its statements have hours, whatever the server
   * bounds others by. One that is given by itself is a transaction: not for what cannot be in one.
   */
  patient(): SqlSession;
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
  /** Longest wait for one statement, behind which the connection is ended; default `ANSWER_TIMEOUT_MS`. */
  readonly answerTimeoutMs?: number;
}

/** Longest wait for a statement over all rows of a large table; one that is given up begins anew. */
const LONG_ANSWER_TIMEOUT_MS = 6 * 3_600_000;

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
  client.on("error", (error) => {
    options.log.warn({ reason: error.message }, "database connection lost");
  });
  try {
    await client.connect();
    const begin = () => setSession(client, IDLE_IN_TRANSACTION_MS);
    await answered(client, CONNECT_TIMEOUT_MS, begin);
  } catch (error) {
    endConnection(client);
    throw toSqlError(error);
  }
  return new ClientSession(client, options.answerTimeoutMs ?? ANSWER_TIMEOUT_MS);
}

class ClientSession implements SqlSession {
  constructor(
    private readonly client: Client,
    private readonly answerTimeoutMs: number,
    private readonly isPatient = false,
  ) {}

  patient(): SqlSession {
    return new ClientSession(this.client, LONG_ANSWER_TIMEOUT_MS, true);
  }

  query<Row>(text: string, parameters: readonly unknown[] = []): Promise<Row[]> {
    if (!this.isPatient) return this.ask(text, parameters);
    return this.transaction((tx) => tx.query(text, parameters));
  }

  private ask<Row>(text: string, parameters: readonly unknown[] = []): Promise<Row[]> {
    return this.answered(async () => {
      const { rows } = await this.client.query(text, boundParameters(text, parameters));
      return rows as Row[];
    });
  }

  async tryLock(key: bigint): Promise<boolean> {
    const [row] = await this.query<{ locked: boolean }>(
      "SELECT pg_try_advisory_lock($1) AS locked",
      [key],
    );
    return row?.locked === true;
  }

  async transaction<T>(work: (tx: CopySql) => Promise<T>): Promise<T> {
    await this.ask("BEGIN ISOLATION LEVEL READ COMMITTED");
    try {
      if (this.isPatient) await this.ask(WITHOUT_BOUNDS);
      const result = await work({
        query: (text, parameters) => this.ask(text, parameters),
        copyIn: (target, rows) => this.copyIn(target, rows),
      });
      await this.commit();
      return result;
    } catch (error) {
      await this.ask("ROLLBACK").catch((ending: unknown) => {
        if (!(ending instanceof SqlError)) throw ending;
      });
      throw error;
    }
  }

  private commit(): Promise<void> {
    return this.answered(async () => {
      const { command } = await this.client.query("COMMIT");
      assertCommitted(command);
    });
  }

  /** None is waited for without end: the connection's locks would be kept from whoever could go on. */
  private async answered<T>(statement: () => Promise<T>): Promise<T> {
    try {
      return await answered(this.client, this.answerTimeoutMs, statement);
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
    await this.answered(async () => {
      const stream = this.client.query(
        copyFrom(`COPY ${target} (${rows.names}) FROM STDIN (FORMAT binary)`),
      );
      await pipeline(Readable.from(rows.pieces()), stream);
    });
  }
}
