/** What connections say of themselves to a server whose own settings are PostgreSQL's defaults. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { MigrationInterface, QueryRunner } from "typeorm";
import { createLogger } from "../../../runtime/process/logger.js";
import { openSqlSession } from "../../../runtime/sql/sql-session.js";
import { openDatabase } from "../../../runtime/sql/sql.js";
import {
  createTestDatabase,
  runOnServer,
  type TestDatabase,
} from "../../helpers/services/postgres.js";
import { until } from "../../helpers/until.js";

const log = createLogger({ component: "test", level: "silent" });
const { signal } = new AbortController();
const common = { applicationName: "settings-test", log };

/** Whether the server may compile a statement to machine code. */
const JIT = "SELECT current_setting('jit') AS jit";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  // The kit's own server has it off.
  const name = new URL(database.url).pathname.slice(1);
  await runOnServer(database.url, `ALTER DATABASE ${name} SET jit = on`);
});
afterAll(() => database.drop());

it("has no statement of a pool compiled to machine code", async () => {
  const options = { ...common, url: database.url, migrations: [], poolSize: 2, signal };
  const db = await openDatabase(options);
  expect(await db.query(JIT)).toEqual([{ jit: "off" }]);
  expect(await db.transaction((tx) => tx.query(JIT))).toEqual([{ jit: "off" }]);
  await db.close();
});

it("has the server end what a client that is gone has asked for", async () => {
  const options = { ...common, url: database.url, migrations: [], poolSize: 2, signal };
  const db = await openDatabase(options);
  const read = "SELECT current_setting('client_connection_check_interval') AS every";
  expect(await db.query(read)).toEqual([{ every: "10s" }]);
  await db.close();
});

it("reads times on a server that writes them otherwise", async () => {
  const name = new URL(database.url).pathname.slice(1);
  await runOnServer(database.url, `ALTER DATABASE ${name} SET datestyle = 'German, DMY'`);
  const read = "SELECT timestamptz '2026-11-12 01:02:03+00' AS at";
  const db = await openDatabase({
    ...common,
    url: database.url,
    migrations: [],
    poolSize: 2,
    signal,
  });
  expect(await db.query(read)).toEqual([{ at: new Date("2026-11-12T01:02:03Z") }]);
  await db.close();
});

/** What a commit waits for. */
const COMMIT = "SELECT current_setting('synchronous_commit') AS commit";

for (const [ofServer, wanted] of [
  ["off", "on"],
  ["remote_write", "remote_write"],
]) {
  it(`has commits that were answered on disk where the server says ${ofServer}`, async () => {
    const name = new URL(database.url).pathname.slice(1);
    await runOnServer(database.url, `ALTER DATABASE ${name} SET synchronous_commit = ${ofServer}`);
    const options = { ...common, url: database.url, migrations: [], poolSize: 2, signal };
    const db = await openDatabase(options);
    expect(await db.transaction((tx) => tx.query(COMMIT))).toEqual([{ commit: wanted }]);
    await db.close();
    const session = await openSqlSession({ ...common, url: database.url });
    expect(await session.query(COMMIT)).toEqual([{ commit: wanted }]);
    await session.close();
  });
}

it("has no statement of a connection of its own compiled either", async () => {
  const session = await openSqlSession({ ...common, url: database.url });
  expect(await session.query(JIT)).toEqual([{ jit: "off" }]);
  await session.close();
});

/** The client's port of a connection. */
const PORT = "SELECT inet_client_port() AS port";

/** How the kernel's table of connections names the timer that asks a silent peer whether it is there. */
const KEEP_ALIVE_TIMER = "02";

/** Hundredths of a second until the system does so; undefined while it waits for something else. */
function silenceTicks(port: number | undefined): number | undefined {
  const [own, server] = [Number(port), Number(new URL(database.url).port)].map(
    (one) => `:${one.toString(16).toUpperCase().padStart(4, "0")}`,
  );
  const rows = readFileSync("/proc/net/tcp", "utf8").split("\n");
  // A port of the client's may have a connection to another server, too.
  const row = rows
    .map((line) => line.trim().split(/\s+/))
    .find(([, from, to]) => from?.endsWith(own ?? "") === true && to?.endsWith(server ?? ""));
  const [timer, ticks = ""] = (row?.[5] ?? "").split(":");
  return timer === KEEP_ALIVE_TIMER ? Number.parseInt(ticks, 16) : undefined;
}

it("learns soon that a server is gone without a word", async () => {
  const options = { ...common, url: database.url, migrations: [], poolSize: 2, signal };
  const db = await openDatabase(options);
  const session = await openSqlSession({ ...common, url: database.url });
  for (const sql of [db, session]) {
    const [row] = await sql.query<{ port: number }>(PORT);
    // Looked at once: the kernel may be at another timer the next time.
    let ticks: number | undefined;
    await until(() => (ticks = silenceTicks(row?.port)) !== undefined, { timeoutMs: 5_000 });
    expect(ticks).toBeLessThanOrEqual(1_000);
  }
  await session.close();
  await db.close();
});

describe("on a server that ends what takes long", () => {
  const BOUNDS = ["statement_timeout", "lock_timeout", "transaction_timeout"];
  /** Longer than any of them. */
  const LONG = "SELECT pg_sleep(0.4)";
  /** Those that the server knows. */
  const READ = `SELECT array(SELECT current_setting(name, true) FROM unnest($1::text[]) AS name
    WHERE current_setting(name, true) IS NOT NULL) AS bounds`;

  class TakeLong1700000000001 implements MigrationInterface {
    async up(runner: QueryRunner): Promise<void> {
      await runner.query("CREATE TABLE long (bounds text[])");
      await runner.query(LONG);
      await runner.query(`INSERT INTO long ${READ}`, [BOUNDS]);
    }

    async down(): Promise<void> {}
  }

  let strict: TestDatabase;
  beforeAll(async () => {
    strict = await createTestDatabase();
    const name = new URL(strict.url).pathname.slice(1);
    await runOnServer(
      strict.url,
      `DO $$ DECLARE bound text; BEGIN
         FOREACH bound IN ARRAY '{${BOUNDS.join(",")}}'::text[] LOOP
           CONTINUE WHEN current_setting(bound, true) IS NULL;
           EXECUTE format('ALTER DATABASE ${name} SET %I = %L', bound, '200ms');
         END LOOP;
       END $$`,
    );
  });
  afterAll(() => strict.drop());

  it("migrations take as long as they take, and what comes behind them is bounded again", async () => {
    const db = await openDatabase({
      ...common,
      url: strict.url,
      migrations: [TakeLong1700000000001],
      poolSize: 2,
      signal,
      startTimeoutMs: 0,
    });
    const [row] = await db.query<{ bounds: string[] }>("SELECT bounds FROM long");
    expect(new Set(row?.bounds)).toEqual(new Set(["0"]));
    expect(await db.query("SELECT name FROM schema_migration")).toEqual([
      { name: TakeLong1700000000001.name },
    ]);
    await expect(db.query(LONG)).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    await db.close();
  });

  it("so does what a connection of its own does patiently, and nothing else", async () => {
    const session = await openSqlSession({ ...common, url: strict.url });
    const patient = session.patient();
    await patient.transaction(async (tx) => {
      await tx.query(LONG);
      const [row] = await tx.query<{ bounds: string[] }>(READ, [BOUNDS]);
      expect(new Set(row?.bounds)).toEqual(new Set(["0"]));
    });
    await patient.query(LONG);
    await expect(session.query(LONG)).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    await session.close();
  });
});

describe("on a server that isolates transactions more strictly than it must", () => {
  const READ = "SELECT current_setting('transaction_isolation') AS level";

  it.each(["repeatable read", "serializable"])(
    "a statement by itself waits for others and goes on with what they left, beside %s",
    async (level) => {
      const strict = await createTestDatabase();
      const name = new URL(strict.url).pathname.slice(1);
      await runOnServer(
        strict.url,
        `ALTER DATABASE ${name} SET default_transaction_isolation = '${level}';
         CREATE TABLE lease (epoch integer); INSERT INTO lease VALUES (1)`,
      );
      const db = await openDatabase({
        ...common,
        url: strict.url,
        migrations: [],
        poolSize: 4,
        signal,
      });
      let renewing: Promise<unknown[]> | undefined;
      await db.transaction(async (tx) => {
        await tx.query("UPDATE lease SET epoch = epoch + 1");
        renewing = db.query("UPDATE lease SET epoch = epoch + 1 RETURNING epoch");
        renewing.catch(() => undefined);
        const waiting =
          "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        await until(async () => (await db.query(waiting)).length > 0, { timeoutMs: 5_000 });
      });
      expect(await renewing).toEqual([{ epoch: 3 }]);
      await db.close();
      const session = await openSqlSession({ ...common, url: strict.url });
      expect(await session.query(READ)).toEqual([{ level: "read committed" }]);
      await session.close();
      await strict.drop();
    },
  );
});
