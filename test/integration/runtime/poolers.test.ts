/** A pooler between a process and PostgreSQL: one that keeps sessions serves, another is refused by name. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { createLogger } from "../../../runtime/process/logger.js";
import { openSqlSession } from "../../../runtime/sql/sql-session.js";
import { openDatabase } from "../../../runtime/sql/sql.js";
import { startPooler } from "../../helpers/services/pooler.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const log = createLogger({ component: "test", level: "silent" });
const { signal } = new AbortController();
const common = { migrations: [], applicationName: "pooler-test", poolSize: 2, log, signal };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const IDLE = "SELECT current_setting('idle_in_transaction_session_timeout') AS idle";

it("serves behind a pooler that keeps sessions, with the time-outs of its own", async () => {
  const pooler = await startPooler(database.url, "session");
  const db = await openDatabase({ ...common, url: pooler.url, startTimeoutMs: 1_000 });
  expect(await db.query(IDLE)).toEqual([{ idle: "5s" }]);
  expect(await db.transaction((tx) => tx.query(IDLE))).toEqual([{ idle: "5s" }]);
  await db.close();
  const session = await openSqlSession({ url: pooler.url, applicationName: "pooler-test", log });
  expect(await session.query(IDLE)).toEqual([{ idle: "1min" }]);
  expect(await session.tryLock(1n)).toBe(true);
  await session.close();
  await pooler.close();
});

it("is refused at once behind one that gives sessions on, and says what to do", async () => {
  const pooler = await startPooler(database.url, "transaction");
  await expect(
    openDatabase({ ...common, url: pooler.url, startTimeoutMs: 20_000 }),
  ).rejects.toMatchObject({
    code: "SESSIONS_SHARED",
    message: expect.stringMatching(/pool mode to session/),
  });
  // The two that were compared: it is not tried again.
  expect(pooler.clientCount()).toBe(2);
  await pooler.close();
});
