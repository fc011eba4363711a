/** Migrations beside sessions that are at work on the same tables, as of a release that was not stopped. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { MigrationInterface, QueryRunner } from "typeorm";
import { createLogger } from "../../../runtime/process/logger.js";
import { openDatabase, type SqlDatabase } from "../../../runtime/sql/sql.js";
import { silentLog, standing } from "../../helpers/services/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";
import { until } from "../../helpers/until.js";

const { signal } = new AbortController();

let made: TestDatabase;
let atWork: SqlDatabase;

const open = (migrations: readonly (new () => MigrationInterface)[], log = silentLog) =>
  openDatabase({
    url: made.url,
    migrations,
    applicationName: "at work",
    poolSize: 4,
    log,
    signal,
    startTimeoutMs: 0,
  });

beforeEach(async () => {
  made = await createTestDatabase();
  atWork = await open([]);
  await atWork.query(`CREATE TABLE first (id integer); CREATE TABLE second (id integer)`);
});
afterEach(async () => {
  await atWork.close();
  await made.drop();
});

/** Whether a session waits for a lock on a table. */
const isWaitedFor = async (table: string) => {
  const rows = await atWork.query(
    `SELECT 1 FROM pg_locks WHERE relation = $1::regclass AND NOT granted`,
    [table],
  );
  return rows.length > 0;
};

it("begin anew where such a session and they wait for each other", async () => {
  let tries = 0;
  class Before1 implements MigrationInterface {
    readonly name = "Before1760000000001";
    async up(runner: QueryRunner): Promise<void> {
      await runner.query(`CREATE TABLE third (id integer)`);
    }
    async down(): Promise<void> {}
  }
  class Both2 implements MigrationInterface {
    readonly name = "Both1760000000002";
    async up(runner: QueryRunner): Promise<void> {
      tries += 1;
      await runner.query(`ALTER TABLE first ADD COLUMN added integer`);
      if (tries === 1) {
        await until(() => isWaitedFor("first"), { timeoutMs: 20_000, what: "the session waits" });
      }
      // Whose look is the first to find them is who ends.
      await runner.query(`SET LOCAL deadlock_timeout = '10ms'`);
      await runner.query(`ALTER TABLE second ADD COLUMN added integer`);
    }
    async down(): Promise<void> {}
  }
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLogger({ component: "test", level: "info", destination });
  let opening: Promise<SqlDatabase> | undefined;
  await standing(atWork, async (tx) => {
    await tx.query(`SET LOCAL deadlock_timeout = '1h'`);
    await tx.query(`SELECT 1 FROM second`);
    opening = open([Before1, Both2], log);
    opening.catch(() => undefined);
    await until(async () => tries > 0, { timeoutMs: 20_000, what: "the migration runs" });
    await tx.query(`SELECT 1 FROM first`);
  });
  const database = await opening;
  if (database === undefined) throw new Error("it was opened");
  await database.query(`SELECT first.added, second.added FROM first, second, third`);
  await database.close();
  expect(tries).toBeGreaterThan(1);
  expect(lines.join("")).toContain("migrations are made again");
});
