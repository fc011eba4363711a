/** A server that neither answers nor is gone: cut off, or standing still. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { errorMessage } from "../../../chain/errors.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { CopyRows } from "../../../runtime/sql/copy-rows.js";
import { openSqlSession, type SqlSession } from "../../../runtime/sql/sql-session.js";
import { openDatabase, type SqlDatabase } from "../../../runtime/sql/sql.js";
import { TcpProxy } from "../../helpers/faults/proxy/tcp-proxy.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";
import { until } from "../../helpers/until.js";

const UNANSWERED = /has not answered for 0\.4 s/;

/** Nothing where a busy machine was late again: whoever asks does so once more. Throws any other fault. */
function ifUnanswered(error: unknown): undefined {
  if (!UNANSWERED.test(errorMessage(error))) throw error;
}

describe("a database that does not answer", () => {
  let server: TestDatabase;
  let proxy: TcpProxy;
  let database: SqlDatabase;
  /** Past the proxy, and with all the time that a busy machine takes. */
  let patient: SqlDatabase;

  beforeAll(async () => {
    server = await createTestDatabase();
    const { hostname, port } = new URL(server.url);
    proxy = await TcpProxy.start({ host: hostname, port: Number(port) });
    const options = {
      url: server.url,
      migrations: [],
      applicationName: "answer-time",
      poolSize: 2,
      keepsPlans: true,
      log: createLogger({ component: "test", level: "silent" }),
      signal: new AbortController().signal,
    };
    patient = await openDatabase(options);
    const url = proxy.through(server.url);
    database = await openDatabase({ ...options, url, answerTimeoutMs: 400 });
    await patient.query("CREATE TABLE kept (id int PRIMARY KEY)");
  });

  afterAll(async () => {
    await proxy.heal();
    await database.close();
    await patient.close();
    await proxy.close();
    await server.drop();
  });

  it.each([
    ["without parameters", []],
    ["with parameters", [7]],
  ])(
    "costs a statement %s, and the next has a connection that answers",
    async (_how, parameters) => {
      const text = parameters.length === 0 ? "SELECT 7 AS value" : "SELECT $1::int AS value";
      proxy.hold("down");
      await expect(database.query(text, parameters)).rejects.toThrow(UNANSWERED);
      await proxy.heal();
      let rows: unknown;
      await until(
        async () => {
          rows = await database.query(text, parameters).catch(ifUnanswered);
          return rows !== undefined;
        },
        { timeoutMs: 10_000, what: "an answer" },
      );
      expect(rows).toEqual([{ value: 7 }]);
    },
  );

  it("costs a transaction, of which nothing stays", async () => {
    let isHeld = false;
    const lose = async () => {
      const work = database.transaction(async (tx) => {
        await tx.query("INSERT INTO kept VALUES (1)");
        proxy.hold("up", "down");
        isHeld = true;
        await tx.query("INSERT INTO kept VALUES (2)");
      });
      await expect(work).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE", retriable: true });
      await proxy.heal();
      // Else the first statement was late already.
      return isHeld;
    };
    await until(lose, { timeoutMs: 10_000, what: "a transaction that comes to its middle" });
    expect(await patient.query("SELECT id FROM kept")).toEqual([]);
  });

  it.each<readonly [string, (session: SqlSession) => Promise<unknown>]>([
    ["statement", (session) => session.query("SELECT $1::int", [7])],
    ["lock", (session) => session.tryLock(7n)],
    ["BEGIN", (session) => session.transaction(async () => undefined)],
    [
      "COMMIT",
      (session) =>
        session.transaction(async (tx) => {
          await tx.query("SELECT 7");
          proxy.hold("down");
        }),
    ],
    [
      "COPY",
      (session) =>
        session.transaction(async (tx) => {
          const rows = new CopyRows(["id int4"]);
          rows.add(7);
          await tx.query("SELECT 7");
          proxy.hold("down");
          await tx.copyIn("kept", rows);
        }),
    ],
  ])(
    "ends a connection of its own, which waits for a %s, with all its locks",
    async (what, ask) => {
      const session = await openSqlSession({
        url: proxy.through(server.url),
        applicationName: "answer-time",
        log: createLogger({ component: "test", level: "silent" }),
        answerTimeoutMs: 400,
      });
      await session.tryLock(8n).catch(ifUnanswered);
      if (what !== "COMMIT" && what !== "COPY") proxy.hold("down");
      await expect(ask(session)).rejects.toThrow(UNANSWERED);
      // At once: nobody says goodbye to a server that does not listen.
      await session.close();
      await proxy.heal();
      const isFree = "SELECT pg_try_advisory_xact_lock(8) AS free";
      await until(async () => (await patient.query<{ free: boolean }>(isFree))[0]?.free === true, {
        timeoutMs: 10_000,
        what: "the lock is free",
      });
    },
  );

  it("is waited for longer on a connection of its own where that is asked for", async () => {
    const session = await openSqlSession({
      url: server.url,
      applicationName: "answer-time",
      log: createLogger({ component: "test", level: "silent" }),
      answerTimeoutMs: 400,
    });
    await session.patient().transaction((tx) => tx.query("SELECT pg_sleep(0.8)"));
    await expect(session.query("SELECT pg_sleep(60)")).rejects.toThrow(UNANSWERED);
    await session.close();
  });

  it("leaves open whether a commit happened", async () => {
    const isKept = `SELECT id FROM kept WHERE id = $1`;
    let id = 2;
    const commit = async () => {
      id += 1;
      const work = database.transaction(async (tx) => {
        await tx.query("INSERT INTO kept VALUES ($1)", [id]);
        proxy.hold("down");
      });
      await expect(work).rejects.toThrow(UNANSWERED);
      await proxy.heal();
      // Else the server had not come to it by the time that nobody waited any more.
      return (await patient.query(isKept, [id])).length > 0;
    };
    await until(commit, { timeoutMs: 10_000, what: "a commit of which nobody was told" });
  });
});
