/** PostgreSQL: pool, transactions that are repeated on conflicts, migrations under one lock. */
import { type ClientBase, type QueryResult, types as postgresTypes } from "pg";
import { DataSource, type QueryRunner, QueryRunnerAlreadyReleasedError } from "typeorm";
import { errorMessage } from "../../chain/errors.js";
import { ANSWER_TIMEOUT_MS, answered } from "./answer-time.js";
import { boundParameters } from "./array-parameters.js";
import { assertOrderStands } from "./collation.js";
import { type MigrationClass, withoutBounds } from "./long-work.js";
import { endConnection, surviveLostConnections } from "./lost-connections.js";
import { asNumberTaken, NUMBERINGS, untilNumbered } from "./numbering.js";
import { openPatiently, type PatienceOptions } from "./opening.js";
import { assertOwnSessions } from "./own-sessions.js";
import { PreparedNames } from "./prepared.js";
import { CONNECT_TIMEOUT_MS, KEEP_ALIVE, setSession } from "./session-settings.js";
import {
  assertCommitted,
  isReadOnly,
  isStalePlan,
  SqlError,
  toPoolFault,
  toSqlError,
} from "./sql-errors.js";
import { systemClock } from "../process/clock.js";
import { retry, sleep } from "../process/task.js";
import { beginsWithin, timeLimit } from "./time-limit.js";

/** Runs single statements. NUMERIC and BIGINT come back as strings, timestamps as `Date`. */
export interface Sql {
  /**
   * Runs one statement with `$1, $2 ...` parameters (bigint and arrays included) and gives its
   * rows, those of RETURNING for INSERT, UPDATE and DELETE. Values belong into the parameters: the
   * server keeps the plans of texts that come again, where it is asked to (`keepsPlans`).
   * @throws SqlError
   */
  query<Row>(text: string, parameters?: readonly unknown[]): Promise<Row[]>;
}

/** A database with its pool of connections. */
export interface SqlDatabase extends Sql {
  /**
   * Runs `work` in one READ COMMITTED transaction and commits, or rolls back when it throws.
   * `work` is run again after a deadlock or serialization failure, and where the database drew a
   * number twice, so it must have no effects outside the transaction. A DATABASE_UNAVAILABLE fault at
   * the commit leaves open whether it happened: read before acting again.
   */
  transaction<T>(work: (tx: Sql) => Promise<T>): Promise<T>;
  /**
   * Runs reads that all see the database as of one moment.
   * @param options.timeLimitMs all of them are given up after this (`timeLimit`)
   */
  snapshot<T>(work: (tx: Sql) => Promise<T>, options: { readonly timeLimitMs: number }): Promise<T>;
  /** Connection URL with password, for other pools on the same database (BullMQ); never log it. */
  readonly url: string;
  /** Waits for statements in flight and closes all connections; may be called again. */
  close(): Promise<void>;
}

/** What `openDatabase` needs; its signal ends waiting for the migration lock, too. */
export interface OpenDatabaseOptions extends PatienceOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** All migrations, listed explicitly; each runs once, in its own transaction. */
  readonly migrations: readonly MigrationClass[];
  /** Shown in pg_stat_activity. */
  readonly applicationName: string;
  /** Connections at most; 2 or more. */
  readonly poolSize: number;
  /** The server keeps plans of statements that come again (`PreparedNames`); default false. */
  readonly keepsPlans?: boolean;
  /** Connections to a server that orders texts otherwise than the indexes are refused; default false. */
  readonly heedsOrder?: boolean;
  /** Longest wait for one statement that is no migration; default `ANSWER_TIMEOUT_MS`. */
  readonly answerTimeoutMs?: number;
  /**
   * Looks at the database before anything of it is changed, and says whether it is to be migrated; what
   * it throws ends the opening. Default: it is.
   */
  readonly beforeMigrating?: (sql: Sql) => Promise<boolean>;
  /** Told before the schema is changed, or waited for while another process does: it may take long. */
  readonly onMigrating?: () => void;
}

/** Key of the advisory lock that makes migrations of several processes run one after another. */
const MIGRATION_LOCK_KEY = 7_226_831_940n;

/**
 * What meets a conflict is done again, behind a pause: so often at most, as more would hide a lock order
 * that is wrong.
 */
const AGAIN = { attempts: 10, minDelayMs: 5, maxDelayMs: 250 } as const;

const isConflict = (error: unknown) => error instanceof SqlError && error.code === "CONFLICT";

/** A process that stopped inside a transaction holds up the others no longer. */
const IDLE_IN_TRANSACTION_MS = 5_000;

/**
 * Connects, waits for the server if need be, and brings the schema up to date.
 * @throws SqlError; DATABASE_UNAVAILABLE when the server does not answer in time, SESSIONS_SHARED behind a
 *   pooler that does not keep sessions, DATABASE_COLLATION where the order of texts is heeded
 */
export function openDatabase(options: OpenDatabaseOptions): Promise<SqlDatabase> {
  return openPatiently(async () => {
    const source = await connect(options);
    try {
      await checkSessions(source);
      if (await wantsMigrations(source, options)) await migrate(source, options);
      return new PooledDatabase(source, options, await readNumberings(source));
    } catch (error) {
      await source.destroy();
      throw error;
    }
  }, options);
}

/** The pool behind `SqlDatabase`. */
class PooledDatabase implements SqlDatabase {
  readonly url: string;
  readonly #source: DataSource;
  readonly #signal: AbortSignal;
  readonly #names: PreparedNames | undefined;
  readonly #answerTimeoutMs: number;
  readonly #numberings: ReadonlySet<string>;
  #closing: Promise<void> | undefined;

  constructor(
    source: DataSource,
    { url, signal, keepsPlans = false, answerTimeoutMs = ANSWER_TIMEOUT_MS }: OpenDatabaseOptions,
    numberings: ReadonlySet<string>,
  ) {
    this.#source = source;
    this.#numberings = numberings;
    this.url = url;
    this.#signal = signal;
    this.#names = keepsPlans ? new PreparedNames() : undefined;
    this.#answerTimeoutMs = answerTimeoutMs;
  }

  query<Row>(text: string, parameters: readonly unknown[] = []): Promise<Row[]> {
    return untilNumbered(() => this.#query<Row>(text, parameters));
  }

  async #query<Row>(text: string, parameters: readonly unknown[]): Promise<Row[]> {
    const runner = this.#source.createQueryRunner();
    try {
      return await this.#run<Row>(runner, text, parameters);
    } catch (error) {
      if (!isStalePlan(error)) throw error;
      return await this.#run<Row>(runner, text, parameters);
    } finally {
      await runner.release();
    }
  }

  transaction<T>(work: (tx: Sql) => Promise<T>): Promise<T> {
    return this.#repeated("BEGIN ISOLATION LEVEL READ COMMITTED", work);
  }

  snapshot<T>(
    work: (tx: Sql) => Promise<T>,
    { timeLimitMs }: { readonly timeLimitMs: number },
  ): Promise<T> {
    const begin = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${beginsWithin(timeLimitMs)}`;
    return this.#repeated(begin, (tx) => {
      const next = timeLimit(timeLimitMs, systemClock);
      return work({
        async query<Row>(text: string, parameters?: readonly unknown[]): Promise<Row[]> {
          const first = next();
          if (first !== undefined) await tx.query(first);
          return tx.query<Row>(text, parameters);
        },
      });
    });
  }

  #repeated<T>(begin: string, work: (tx: Sql) => Promise<T>): Promise<T> {
    return retry(() => untilNumbered(() => this.#attempt(begin, work)), {
      ...AGAIN,
      signal: neverAborted,
      isRetriable: (error) => !this.#signal.aborted && isConflict(error),
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#source.destroy();
    return this.#closing;
  }

  async #attempt<T>(begin: string, work: (tx: Sql) => Promise<T>): Promise<T> {
    const runner = this.#source.createQueryRunner();
    try {
      await this.#answered(runner, (connection) => rawQuery(connection, begin, []));
      const result = await work({
        query: <Row>(text: string, parameters: readonly unknown[] = []) =>
          this.#run<Row>(runner, text, parameters),
      });
      await this.#answered(runner, commit);
      return result;
    } catch (error) {
      await this.#rollback(runner);
      throw error;
    } finally {
      await runner.release();
    }
  }

  /** Runs a statement, prepared where it comes often. A stale plan is a CONFLICT, once. */
  async #run<Row>(
    runner: QueryRunner,
    text: string,
    parameters: readonly unknown[],
  ): Promise<Row[]> {
    const name = parameters.length === 0 ? undefined : this.#names?.nameOf(text);
    try {
      return await this.#answered(runner, async (connection) => {
        if (name === undefined) return rawQuery<Row>(connection, text, parameters);
        const { rows } = await connection.query({
          name,
          text,
          values: boundParameters(text, parameters),
        });
        return rows as Row[];
      });
    } catch (error) {
      const fault = asNumberTaken(toSqlError(error), this.#numberings);
      if (isStalePlan(fault)) this.#names?.renew();
      throw fault;
    }
  }

  /** Ends a failed transaction; on a broken connection the server has done so already. */
  async #rollback(runner: QueryRunner): Promise<void> {
    try {
      await this.#answered(runner, (connection) => rawQuery(connection, "ROLLBACK", []));
    } catch (error) {
      if (!(error instanceof SqlError)) throw error;
    }
  }

  /**
   * Runs a statement on the runner's connection; none is waited for without end. A connection on which
   * nothing can be written is ended: behind a failover the next one leads to the server that writes, and this
   * one would stay where it is, used before all others.
   */
  async #answered<T>(
    runner: QueryRunner,
    statement: (connection: ClientBase) => Promise<T>,
  ): Promise<T> {
    let connection: ClientBase | undefined;
    try {
      const own = (connection = await connectionOf(runner));
      return await answered(own, this.#answerTimeoutMs, () => statement(own));
    } catch (error) {
      const fault = toPoolFault(error);
      if (connection !== undefined && isReadOnly(fault)) endConnection(connection);
      throw fault;
    }
  }
}

/** A commit is never abandoned half way because the process is stopping. */
const neverAborted = new AbortController().signal;

/** Connects the pool. */
async function connect(options: OpenDatabaseOptions): Promise<DataSource> {
  surviveLostConnections();
  const source = new DataSource({
    type: "postgres",
    url: options.url,
    applicationName: options.applicationName,
    migrations: options.migrations.map(withoutBounds),
    migrationsTableName: "schema_migration",
    migrationsTransactionMode: "each",
    synchronize: false,
    // Faults are thrown; TypeORM's own console lines would break the JSON log.
    logging: false,
    logger: silentOrmLogger,
    poolSize: Math.max(options.poolSize, 2),
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    poolErrorHandler: (error: unknown) =>
      options.log.warn({ reason: errorMessage(error) }, "database connection lost"),
    extra: {
      ...KEEP_ALIVE,
      verify: (client: ClientBase, done: (error?: unknown) => void) =>
        void beginSession(client, options.heedsOrder ?? false, done),
      types: { getTypeParser: exactTypeParser },
    },
  });
  try {
    return await source.initialize();
  } catch (error) {
    throw toSqlError(error);
  }
}

/** Sets a new connection's session, and says what went wrong; never rejects. */
async function beginSession(
  client: ClientBase,
  heedsOrder: boolean,
  done: (error?: unknown) => void,
): Promise<void> {
  let fault: unknown;
  try {
    const begin = async () => {
      await setSession(client, IDLE_IN_TRANSACTION_MS);
      if (heedsOrder) await assertOrderStands(client);
    };
    await answered(client, CONNECT_TIMEOUT_MS, begin);
  } catch (error) {
    fault = error;
  }
  done(fault);
}

async function checkSessions(source: DataSource): Promise<void> {
  const runners = [source.createQueryRunner(), source.createQueryRunner()] as const;
  const pidOf = (runner: QueryRunner) => async () => {
    const [row] = await runQuery<{ pid: number }>(runner, "SELECT pg_backend_pid() AS pid", []);
    return row?.pid ?? 0;
  };
  try {
    await assertOwnSessions([pidOf(runners[0]), pidOf(runners[1])]);
  } finally {
    for (const runner of runners) await runner.release();
  }
}

const nothing = () => undefined;

/** TypeORM prints failed migrations on the console whatever `logging` says. */
const silentOrmLogger = {
  logQuery: nothing,
  logQueryError: nothing,
  logQuerySlow: nothing,
  logSchemaBuild: nothing,
  logMigration: nothing,
  log: nothing,
};

/** PostgreSQL's type ids of numeric[] and text[]. */
const NUMERIC_ARRAY_OID = 1231;
const TEXT_ARRAY_OID = 1009;

/** The driver's parsers, but arrays of amounts stay exact strings instead of becoming floats. */
function exactTypeParser(oid: number, format?: "text" | "binary"): unknown {
  return postgresTypes.getTypeParser(oid === NUMERIC_ARRAY_OID ? TEXT_ARRAY_OID : oid, format);
}

async function wantsMigrations(
  source: DataSource,
  { migrations, beforeMigrating }: OpenDatabaseOptions,
): Promise<boolean> {
  if (beforeMigrating === undefined) return migrations.length > 0;
  const runner = source.createQueryRunner();
  try {
    return await beforeMigrating({
      query: <Row>(text: string, parameters: readonly unknown[] = []) =>
        runQuery<Row>(runner, text, parameters),
    });
  } finally {
    await runner.release();
  }
}

/** Runs pending migrations while holding the advisory lock on a connection of its own. */
async function migrate(source: DataSource, options: OpenDatabaseOptions): Promise<void> {
  options.onMigrating?.();
  const lock = source.createQueryRunner();
  try {
    // Polled rather than awaited in SQL, so that a stop signal ends the wait.
    for (;;) {
      const [row] = await runQuery<{ locked: boolean }>(
        lock,
        "SELECT pg_try_advisory_lock($1) AS locked",
        [MIGRATION_LOCK_KEY],
      );
      if (row?.locked === true) {
        break;
      }
      await sleep(50, { signal: options.signal });
    }
    const done = await runMigrations(source, options);
    if (done.length > 0) {
      options.log.info({ migrations: done.map((step) => step.name) }, "database schema updated");
    }
    await unlock(lock);
  } catch (error) {
    throw toSqlError(error);
  } finally {
    await lock.release();
  }
}

/**
 * Runs them one by one. A service of the release before that is still at work may wait for what a migration
 * has locked, with what it waits for.
 */
function runMigrations(source: DataSource, { log, signal }: OpenDatabaseOptions) {
  const run = async () => {
    try {
      return await source.runMigrations({ transaction: "each" });
    } catch (error) {
      throw toSqlError(error);
    }
  };
  return retry(run, {
    ...AGAIN,
    signal,
    isRetriable: isConflict,
    onRetry: (error) => log.warn({ reason: errorMessage(error) }, "migrations are made again"),
  });
}

/** Gives the lock back; where that cannot be said, the server takes it back with its connection. */
async function unlock(lock: QueryRunner): Promise<void> {
  try {
    await runQuery(lock, "SELECT pg_advisory_unlock($1)", [MIGRATION_LOCK_KEY]);
  } catch {
    if (!lock.isReleased) endConnection(await connectionOf(lock));
  }
}

async function readNumberings(source: DataSource): Promise<ReadonlySet<string>> {
  const runner = source.createQueryRunner();
  try {
    const rows = await runQuery<{ name: string }>(runner, NUMBERINGS, []);
    return new Set(rows.map(({ name }) => name));
  } finally {
    await runner.release();
  }
}

/** Runs a statement while a database is opened, which is not waited for without end either. */
async function runQuery<Row>(
  runner: QueryRunner,
  text: string,
  parameters: readonly unknown[],
): Promise<Row[]> {
  try {
    const connection = await connectionOf(runner);
    const statement = () => rawQuery<Row>(connection, text, parameters);
    return await answered(connection, ANSWER_TIMEOUT_MS, statement);
  } catch (error) {
    throw toSqlError(error);
  }
}

/** By the driver: TypeORM's runner tells its own listeners of each statement, and here there are none. */
async function rawQuery<Row>(
  connection: ClientBase,
  text: string,
  parameters: readonly unknown[],
): Promise<Row[]> {
  const result: QueryResult | readonly QueryResult[] = await connection.query(
    text,
    boundParameters(text, parameters),
  );
  // Several statements in one text have as many results, and nobody asks for their rows.
  return ("rows" in result ? result.rows : []) as Row[];
}

/** The driver's own connection of a runner. */
async function connectionOf(runner: QueryRunner): Promise<ClientBase> {
  // A runner that was given back would open a connection that nobody ends.
  if (runner.isReleased) throw new QueryRunnerAlreadyReleasedError();
  return (await runner.connect()) as ClientBase;
}

async function commit(connection: ClientBase): Promise<void> {
  const { command } = await connection.query("COMMIT");
  assertCommitted(command);
}
