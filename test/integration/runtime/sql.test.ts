import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { MigrationInterface, QueryRunner } from "typeorm";
import { createLogger } from "../../../runtime/process/logger.js";
import { SqlError } from "../../../runtime/sql/sql-errors.js";
import { openSqlSession } from "../../../runtime/sql/sql-session.js";
import { type Sql, type SqlDatabase, openDatabase } from "../../../runtime/sql/sql.js";
import { retry } from "../../../runtime/process/task.js";
import { createGate } from "../../helpers/gate.js";
import {
  createTestDatabase,
  runOnServer,
  type TestDatabase,
} from "../../helpers/services/postgres.js";

/** Slow on purpose, so that racing starts meet in the middle of it. */
class CreateCounter1700000000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      "CREATE TABLE counter (name text PRIMARY KEY, total numeric(78,0) CHECK (total >= 0))",
    );
    await runner.query("SELECT pg_sleep(0.1)");
    await runner.query("INSERT INTO counter VALUES ('left', 10), ('right', 10)");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE counter");
  }
}

class BreaksHalfWay1700000000002 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("CREATE TABLE half (id int)");
    await runner.query("SELECT 1/0");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE half");
  }
}

/** Who has an advisory lock of this database. */
const HOLDERS = `SELECT pid FROM pg_locks JOIN pg_database d ON d.oid = database
  WHERE locktype = 'advisory' AND granted AND datname = current_database()`;

/** Takes longer than a server may let connections idle. */
class TakesLong1700000000003 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("SELECT pg_sleep(0.5)");
    await runner.query(`CREATE TABLE holder AS ${HOLDERS}`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE holder");
  }
}

/** Ends what holds the migration lock, as a server does that wants connections back. */
class LosesItsLock1700000000004 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`SELECT pg_terminate_backend(pid, 5000) FROM (${HOLDERS}) holder`);
  }

  async down(): Promise<void> {}
}

const log = createLogger({ component: "test", level: "silent" });
const { signal } = new AbortController();

describe("openDatabase", () => {
  let database: TestDatabase;
  let db: SqlDatabase;
  const options = () => ({
    url: database.url,
    migrations: [CreateCounter1700000000001],
    applicationName: "sql-test",
    poolSize: 4,
    keepsPlans: true,
    log,
    signal,
  });

  beforeAll(async () => {
    database = await createTestDatabase();
    db = await openDatabase(options());
  });

  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  it("runs migrations once when three processes start together", async () => {
    const fresh = await createTestDatabase();
    const opened = await Promise.all(
      [1, 2, 3].map(() => openDatabase({ ...options(), url: fresh.url })),
    );
    for (const each of opened) {
      expect(await each.query("SELECT name FROM counter ORDER BY name")).toEqual([
        { name: "left" },
        { name: "right" },
      ]);
      await each.close();
    }
    await fresh.drop();
  });

  it("leaves nothing of a migration that fails, and says so with a code", async () => {
    const fresh = await createTestDatabase();
    const broken = { ...options(), url: fresh.url, migrations: [BreaksHalfWay1700000000002] };
    await expect(openDatabase(broken)).rejects.toMatchObject({
      code: "DATABASE_FAULT",
      details: { sqlState: "22012" },
    });
    const after = await openDatabase({ ...options(), url: fresh.url });
    expect(await after.query("SELECT to_regclass('half') AS name")).toEqual([{ name: null }]);
    await after.close();
    await fresh.drop();
  });

  it("keeps the lock of a long migration where connections may not idle for long", async () => {
    const fresh = await createTestDatabase();
    const name = new URL(fresh.url).pathname.slice(1);
    await runOnServer(fresh.url, `ALTER DATABASE ${name} SET idle_session_timeout = '100ms'`);
    const slow = { ...options(), url: fresh.url, migrations: [TakesLong1700000000003] };
    const opened = await openDatabase(slow);
    expect(await opened.query("SELECT count(*)::int AS holders FROM holder")).toEqual([
      { holders: 1 },
    ]);
    await opened.close();
    await fresh.drop();
  });

  it("is open where the lock is lost once all migrations are done", async () => {
    const fresh = await createTestDatabase();
    const losing = { ...options(), url: fresh.url, migrations: [LosesItsLock1700000000004] };
    const opened = await openDatabase({ ...losing, startTimeoutMs: 0 });
    expect(await opened.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await opened.close();
    await fresh.drop();
  });

  it("gives amounts and big counters back as exact strings and takes bigint parameters", async () => {
    const large = 2n ** 255n;
    const rows = await db.query(
      "SELECT $1::numeric(78,0) AS amount, $2::bigint AS seq, $3::numeric(78,0)[] AS list",
      [large, 2n ** 62n, [large, 1n]],
    );
    expect(rows).toEqual([
      { amount: large.toString(), seq: (2n ** 62n).toString(), list: [large.toString(), "1"] },
    ]);
  });

  it("gives the rows of RETURNING for updates and deletes", async () => {
    const updated = await db.query("UPDATE counter SET total = total RETURNING name");
    expect(updated).toHaveLength(2);
    expect(await db.query("DELETE FROM counter WHERE false")).toEqual([]);
  });

  it("rolls back everything when the work throws", async () => {
    const fault = new Error("stop here");
    const failing = db.transaction(async (tx) => {
      await tx.query("UPDATE counter SET total = 99 WHERE name = 'left'");
      throw fault;
    });
    await expect(failing).rejects.toBe(fault);
    const rows = await db.query("SELECT total FROM counter WHERE name = 'left'");
    expect(rows).toEqual([{ total: "10" }]);
  });

  it("does not call a transaction committed of which a statement failed", async () => {
    const swallowing = async (tx: Sql) => {
      await tx.query("UPDATE counter SET total = 99 WHERE name = 'left'");
      await tx.query("SELECT 1/0").catch(() => undefined);
    };
    const fault = { code: "DATABASE_FAULT", message: expect.stringContaining("ROLLBACK") };
    await expect(db.transaction(swallowing)).rejects.toMatchObject(fault);
    const session = await openSqlSession({ url: database.url, applicationName: "sql-test", log });
    await expect(session.transaction(swallowing)).rejects.toMatchObject(fault);
    await session.close();
    const rows = await db.query("SELECT total FROM counter WHERE name = 'left'");
    expect(rows).toEqual([{ total: "10" }]);
  });

  it("keeps the plans of statements that come again, and of no others", async () => {
    const kept = (tx: Sql) =>
      tx.query<{ statement: string }>("SELECT statement FROM pg_prepared_statements");
    await db.transaction(async (tx) => {
      const before = (await kept(tx)).length;
      const often = "SELECT total FROM counter WHERE name = $1 -- often";
      for (let turn = 0; turn < 5; turn += 1) {
        expect(await tx.query(often, ["left"])).toHaveLength(1);
      }
      await tx.query("SELECT total FROM counter WHERE name = $1 -- once", ["left"]);
      const after = await kept(tx);
      expect(after.map(({ statement }) => statement)).toContain(often);
      expect(after).toHaveLength(before + 1);
    });
  });

  it("keeps no plans where nobody asked for it", async () => {
    const other = await openDatabase({ ...options(), keepsPlans: false });
    try {
      const kept = await other.transaction(async (tx) => {
        for (let turn = 0; turn < 5; turn += 1) await tx.query("SELECT $1::int", [turn]);
        return tx.query("SELECT 1 FROM pg_prepared_statements");
      });
      expect(kept).toEqual([]);
    } finally {
      await other.close();
    }
  });

  it("keeps a bounded number of plans", async () => {
    const other = await openDatabase(options());
    try {
      const [row] = await other.transaction(async (tx) => {
        for (let text = 0; text < 300; text += 1) {
          for (let turn = 0; turn < 3; turn += 1) await tx.query(`SELECT $1::int + ${text}`, [1]);
        }
        return tx.query<{ n: number }>("SELECT count(*)::int AS n FROM pg_prepared_statements");
      });
      expect(row?.n).toBe(200);
    } finally {
      await other.close();
    }
  });

  it("goes on where a table gets another column under a statement that it keeps", async () => {
    const text = "SELECT * FROM wider WHERE id > $1";
    await db.query("CREATE TABLE wider (id int)");
    await db.query("INSERT INTO wider VALUES (1)");
    // On every connection of the pool.
    const onAll = (work: () => Promise<unknown>) => Promise.all([1, 2, 3, 4].map(work));
    for (let turn = 0; turn < 4; turn += 1) await onAll(() => db.query(text, [0]));
    await db.query("ALTER TABLE wider ADD COLUMN name text DEFAULT 'one'");
    await onAll(async () => {
      expect(await db.query(text, [0])).toEqual([{ id: 1, name: "one" }]);
    });
    for (let turn = 0; turn < 4; turn += 1) await onAll(() => db.query(text, [0]));
    await db.query("ALTER TABLE wider DROP COLUMN name");
    const read = () => db.transaction((tx) => tx.query(text, [0]));
    await onAll(async () => {
      expect(await read()).toEqual([{ id: 1 }]);
    });
  });

  it("names the violated constraint", async () => {
    const failing = db.query("UPDATE counter SET total = -1");
    await expect(failing).rejects.toMatchObject({ code: "CHECK_VIOLATION" });
    const duplicate = db.query("INSERT INTO counter VALUES ('left', 1)");
    const error = await duplicate.catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(SqlError);
    expect(error instanceof SqlError && error.constraint).toBe("counter_pkey");
  });

  it("repeats the transaction that lost a deadlock, so that both take effect", async () => {
    let arrived = 0;
    let runs = 0;
    const bothHoldOne = createGate();
    const moves: Promise<void>[] = [];
    const move = (first: string, second: string) =>
      db.transaction(async (tx) => {
        runs += 1;
        // Each stands still until the other one holds its row, too.
        await tx.query("SET LOCAL idle_in_transaction_session_timeout = 0");
        // The repeat takes its first row at once, and on a busy machine before the other one is woken,
        // which waits for that row: a second deadlock, where one is asked for.
        if (runs > 2) await Promise.race(moves);
        await tx.query("UPDATE counter SET total = total + 1 WHERE name = $1", [first]);
        arrived += 1;
        if (arrived === 2) {
          bothHoldOne.open();
        }
        await bothHoldOne.opened;
        await tx.query("UPDATE counter SET total = total + 1 WHERE name = $1", [second]);
      });
    moves.push(move("left", "right"), move("right", "left"));
    await Promise.all(moves);
    expect(runs).toBe(3);
    const rows = await db.query("SELECT total FROM counter ORDER BY name");
    expect(rows).toEqual([{ total: "12" }, { total: "12" }]);
  });

  it("survives the loss of all connections and marks the fault as retriable", async () => {
    const killer = db.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()",
    );
    await expect(killer).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE", retriable: true });
    const again = () => db.query("SELECT 1 AS one");
    const rows = await retry(again, { signal, attempts: 20, minDelayMs: 10, maxDelayMs: 100 });
    expect(rows).toEqual([{ one: 1 }]);
  });

  it("gives up on a server that never answers and leaves at once when told to stop", async () => {
    const unreachable = { ...options(), url: "postgres://nobody:x@127.0.0.1:1/none" };
    await expect(openDatabase({ ...unreachable, startTimeoutMs: 150 })).rejects.toMatchObject({
      code: "DATABASE_UNAVAILABLE",
    });
    const controller = new AbortController();
    const waiting = openDatabase({ ...unreachable, signal: controller.signal });
    controller.abort(new Error("stopping"));
    await expect(waiting).rejects.toThrow("stopping");
  });

  it("never shows the password in an error", async () => {
    const url = new URL(database.url);
    url.password = "wrong-password-text";
    const opening = openDatabase({ ...options(), url: url.href });
    const error = await opening.catch((caught: unknown) => caught);
    expect(String(error)).not.toContain("wrong-password-text");
  });
});
