/** PostgreSQL ends a migration's session behind its last statement: nothing stays, and it runs again. */
import { afterEach, expect, it } from "@jest/globals";
import type { MigrationInterface, QueryRunner } from "typeorm";
import { LEDGER_MIGRATIONS, openLedger } from "../../../../ledger/database.js";
import type { MigrationClass } from "../../../../runtime/sql/long-work.js";
import { openDatabase } from "../../../../runtime/sql/sql.js";
import { createRandom } from "../../../helpers/random.js";
import {
  createLedgerDatabase,
  silentLog,
  TEST_IDENTITY,
} from "../../../helpers/services/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../../helpers/services/postgres.js";

const { signal } = new AbortController();

/** Of so many migrations one is cut, on the average: each costs a tenth of a second. */
const STRIDE = 4;

const opened: TestDatabase[] = [];
afterEach(async () => {
  for (const { drop } of opened.splice(0)) await drop();
});

/** As it is, but its session ends before it is noted and committed. */
function cutShort(migration: MigrationClass): MigrationClass {
  const whole = new migration();
  return class implements MigrationInterface {
    readonly name = String(whole.name);
    async up(runner: QueryRunner): Promise<void> {
      await whole.up(runner);
      await runner.query("SELECT pg_terminate_backend(pg_backend_pid())");
    }
    async down(): Promise<void> {}
  };
}

/** Everything that is defined in the ledger's schema, and the rows that migrations write, as one digest. */
const SCHEMA = `
  SELECT md5(string_agg(line, E'\\n' ORDER BY line)) AS digest FROM (
    SELECT format('column %s.%s %s %s %s', table_name, column_name, data_type, is_nullable,
                  column_default) FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid))
      FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    UNION ALL SELECT format('index %s', indexdef) FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT format('trigger %s', pg_get_triggerdef(oid)) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT format('function %s', pg_get_functiondef(oid))
      FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT format('sequence %s', sequencename) FROM pg_sequences WHERE schemaname = 'public'
    UNION ALL SELECT format('rows of customer %s', id) FROM customer
    UNION ALL SELECT format('done %s', name) FROM schema_migration
  ) AS lines (line)`;

async function digestOf(url: string, migrations: readonly MigrationClass[]): Promise<string> {
  const options = { url, migrations, applicationName: "cut", poolSize: 2, log: silentLog, signal };
  const database = await openDatabase(options);
  try {
    const [row] = await database.query<{ digest: string }>(SCHEMA);
    return String(row?.digest);
  } finally {
    await database.close();
  }
}

it("a migration that is cut off leaves nothing, and the next start makes the same tables", async () => {
  const [cut, straight] = [await createTestDatabase(), await createLedgerDatabase(TEST_IDENTITY)];
  opened.push(cut, straight);
  const { url } = cut;
  const common = { url, applicationName: "cut", poolSize: 2, log: silentLog, signal };
  const seed = Number(process.env["CAUSEWAY_TEST_SEED"] ?? Date.now() % 1_000_000);
  console.log(`interrupted migrations: seed ${seed} (CAUSEWAY_TEST_SEED)`);
  const random = createRandom(seed);
  let next = 0;
  for (;;) {
    // Every one that is drawn is cut; those up to it are made as one start makes them.
    next += 1 + random.integer(2 * STRIDE - 1);
    const migration = LEDGER_MIGRATIONS[next];
    if (migration === undefined) break;
    const done = LEDGER_MIGRATIONS.slice(0, next);
    const before = await digestOf(url, done);
    await expect(
      // Once: a start that waits for the server would be cut again and again.
      openDatabase({ ...common, startTimeoutMs: 0, migrations: [...done, cutShort(migration)] }),
    ).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    expect(await digestOf(url, [])).toBe(before);
  }
  const ledger = await openLedger({ url, log: silentLog, signal, identity: TEST_IDENTITY });
  await ledger.close();
  expect(await digestOf(url, [])).toBe(await digestOf(straight.url, []));
});
