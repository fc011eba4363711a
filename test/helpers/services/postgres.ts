/** Real PostgreSQL databases for tests: one empty database for each call, on one server per run. */
import { randomBytes } from "node:crypto";
import { Client, DatabaseError } from "pg";
import { indexerRole, LEDGER_SERVICES, ledgerRole } from "../../../ledger/roles.js";
import { postgresServerUrl } from "./services.js";

/** An empty database of a test. */
export interface TestDatabase {
  /** Connection URL of the database's owner. */
  readonly url: string;
  /** Ends all sessions on the database and removes it. */
  readonly drop: () => Promise<void>;
}

/**
 * Makes an empty database on the run's server (the kit's embedded one), or on the server of
 * DATABASE_URL_TEST_SERVER. Takes some 20 ms; the first call of a run about 2 s.
 * @param encoding how the server writes text there; default: as in all else that it has
 */
export function createTestDatabase(encoding?: string): Promise<TestDatabase> {
  const other = encoding === undefined ? "" : ` ENCODING '${encoding}' LOCALE 'C'`;
  return createFrom(`template0${other}`);
}

/** The same with texts in ICU's order, which has a version whatever the server was made with: "C" has none. */
export function createVersionedDatabase(): Promise<TestDatabase> {
  return createFrom("template0 LOCALE_PROVIDER icu ICU_LOCALE 'und'");
}

async function createFrom(template: string): Promise<TestDatabase> {
  const serverUrl = await postgresServerUrl();
  const name = `test_${randomBytes(8).toString("hex")}`;
  await administer(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template}${copiedAs()}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => dropDatabase(serverUrl, name) };
}

/** Whether the server is the run's own. */
const endsWithRun = (): boolean =>
  (process.env["DATABASE_URL_TEST_SERVER"] ?? "") === "" ||
  process.env["CAUSEWAY_TEST_SERVER_ENDS"] === "1";

/** Files instead of a log of every page: half the time where nothing waits for a disk. */
const copiedAs = (): string => (endsWithRun() ? " STRATEGY file_copy" : "");

/** PostgreSQL's `invalid_catalog_name`: there is no such database. */
const NO_DATABASE = "3D000";

/**
 * A copy of a database that the run makes once: a third of the time of making each. On a server that
 * does not end with the run each is made, because what is left there would stay.
 * @param kind what is in it; names it
 * @param fill makes it, on an empty database
 */
export async function createFilledDatabase(
  kind: string,
  fill: (url: string) => Promise<void>,
): Promise<TestDatabase> {
  const template = `template_${kind}`;
  if (endsWithRun()) {
    try {
      return await createFrom(template);
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.code !== NO_DATABASE) throw error;
    }
  }
  const filled = await createTestDatabase();
  await fill(filled.url);
  if (!endsWithRun()) return filled;
  const serverUrl = await postgresServerUrl();
  const name = new URL(filled.url).pathname.slice(1);
  try {
    await administer(serverUrl, `ALTER DATABASE ${name} RENAME TO ${template}`);
    await administer(serverUrl, `ALTER DATABASE ${template} ALLOW_CONNECTIONS false`);
  } catch {
    return filled; // Another file of the run was quicker.
  }
  return createFrom(template);
}

async function dropDatabase(serverUrl: string, name: string): Promise<void> {
  await administer(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  const roles = [...LEDGER_SERVICES.map((service) => ledgerRole(name, service)), indexerRole(name)];
  await administer(serverUrl, `DROP ROLE IF EXISTS ${roles.join(", ")}`);
}

/**
 * Copies a database as it stands, as a backup does. Sessions on it end; pools connect again.
 * @param from URL of the database's owner
 */
export async function copyTestDatabase(from: string): Promise<TestDatabase> {
  const serverUrl = await postgresServerUrl();
  const source = new URL(from).pathname.slice(1);
  const name = `test_${randomBytes(8).toString("hex")}`;
  await administer(serverUrl, `ALTER DATABASE ${source} ALLOW_CONNECTIONS false`);
  try {
    await administer(serverUrl, endingSessions(source));
    await administer(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${source}${copiedAs()}`);
  } finally {
    await administer(serverUrl, `ALTER DATABASE ${source} ALLOW_CONNECTIONS true`);
  }
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => dropDatabase(serverUrl, name) };
}

/**
 * Ends all sessions on a database, and comes back when they are gone. All are told at once: the server
 * looks after each one that is waited for every 100 ms only.
 */
function endingSessions(database: string): string {
  const sessions = `FROM pg_stat_activity WHERE datname = '${database}'`;
  return `
    SET LOCAL statement_timeout = '10s';
    DO $$ BEGIN
      PERFORM pg_terminate_backend(pid) ${sessions};
      WHILE EXISTS (SELECT ${sessions}) LOOP
        PERFORM pg_sleep(0.005);
        PERFORM pg_stat_clear_snapshot();
      END LOOP;
    END $$`;
}

/** Under this name a worker's sessions stay when a file ends: the next one's modules are others. */
const ADMINISTRATORS = Symbol.for("causeway.test.administrators");

/**
 * Runs statements as superuser on the maintenance database, over one session of the worker: tests make
 * and remove databases by the thousands, and a session is dearer than most of what is done in it.
 */
async function administer(serverUrl: string, statement: string): Promise<void> {
  const kept = globalThis as { [ADMINISTRATORS]?: Map<string, Promise<Client>> };
  const sessions = (kept[ADMINISTRATORS] ??= new Map<string, Promise<Client>>());
  const session = sessions.get(serverUrl) ?? openSession(serverUrl, sessions);
  sessions.set(serverUrl, session);
  await (await session).query(statement);
}

/** A session that keeps no process; one that is lost is opened anew when it is asked for. */
async function openSession(
  serverUrl: string,
  sessions: Map<string, Promise<Client>>,
): Promise<Client> {
  const client = new Client({ connectionString: serverUrl });
  const lost = () => void sessions.delete(serverUrl);
  client.on("error", lost);
  client.on("end", lost);
  try {
    await client.connect();
  } catch (error) {
    lost();
    throw error;
  }
  (client as Client & { unref(): void }).unref();
  return client;
}

/** Runs statements as superuser on the URL's own database, in a session that ends with them. */
export async function runOnServer(serverUrl: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
