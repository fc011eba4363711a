/** Numbers that a killed server forgets: rows get others, and nobody is told of a contradiction. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { MigrationInterface, QueryRunner } from "typeorm";
import { type Sql, type SqlDatabase, openDatabase } from "../../../runtime/sql/sql.js";
import { OwnPostgres } from "../../helpers/faults/lab/own-postgres.js";
import { silentLog as log } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";

class CreateEntries1700000000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE SEQUENCE place; CREATE TABLE entry (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      place bigint NOT NULL UNIQUE DEFAULT nextval('place'),
      name text NOT NULL UNIQUE)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE entry");
  }
}

const { signal } = new AbortController();
const insert = (sql: Sql, ...names: readonly string[]) =>
  sql.query<{ id: string }>(
    `INSERT INTO entry (name) SELECT name FROM unnest($1::text[]) AS name RETURNING id::text`,
    [names],
  );

let postgres: OwnPostgres;
let database: SqlDatabase;

function open(name: string): Promise<SqlDatabase> {
  return openDatabase({
    url: postgres.urlOf(name),
    migrations: [CreateEntries1700000000001],
    applicationName: "numbering-test",
    poolSize: 2,
    keepsPlans: true,
    log,
    signal,
  });
}

beforeAll(async () => {
  postgres = await OwnPostgres.start();
  await postgres.replace("first", "template1");
  const first = await open("first");
  await insert(first, "a", "b");
  await first.close();
  await postgres.replace("copy", "first");
  database = await open("copy");
  await insert(database, "c", "d", "e", "f", "g", "h", "i", "j");
  await postgres.kill();
  await postgres.start();
  const isThere = () =>
    database.query(`SELECT 1`).then(
      () => true,
      () => false,
    );
  await until(isThere, { timeoutMs: 20_000, what: "the pool finds the server again" });
});
afterAll(async () => {
  await database.close();
  await postgres.remove();
});

it("are drawn until they are new, in transactions and without", async () => {
  const [sequence] = await database.query<{ last: string }>(
    `SELECT last_value::text AS last FROM entry_id_seq`,
  );
  // Else the server has not forgotten anything, and nothing is shown here.
  expect(Number(sequence?.last)).toBeLessThan(10);
  let tries = 0;
  const rows = await database.transaction(async (tx) => {
    tries += 1;
    return insert(tx, "k", "l");
  });
  expect(tries).toBeGreaterThan(1);
  rows.push(...(await insert(database, "m")));
  expect(rows.map(({ id }) => Number(id) > 10)).toEqual([true, true, true]);
  const counts = await database.query(
    `SELECT count(*)::integer AS rows, count(DISTINCT name)::integer AS names FROM entry`,
  );
  expect(counts).toEqual([{ rows: 13, names: 13 }]);
});

it("do not hide what was really there before", async () => {
  let tries = 0;
  const again = database.transaction(async (tx) => {
    tries += 1;
    return insert(tx, "a");
  });
  await expect(again).rejects.toMatchObject({ code: "UNIQUE_VIOLATION" });
  expect(tries).toBe(1);
  await expect(insert(database, "a")).rejects.toMatchObject({ constraint: "entry_name_key" });
});
