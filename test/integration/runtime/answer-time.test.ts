/** A server that neither answers nor is gone: cut off, or standing still. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createLogger } from "../../../runtime/process/logger.js";
import { openDatabase, type SqlDatabase } from "../../../runtime/sql/sql.js";
import { TcpProxy } from "../../helpers/faults/proxy/tcp-proxy.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const UNANSWERED = /has not answered for 0\.4 s/;

describe("a database that does not answer", () => {
  let server: TestDatabase;
  let proxy: TcpProxy;
  let database: SqlDatabase;

  beforeAll(async () => {
    server = await createTestDatabase();
    const { hostname, port } = new URL(server.url);
    proxy = await TcpProxy.start({ host: hostname, port: Number(port) });
    database = await openDatabase({
      url: proxy.through(server.url),
      migrations: [],
      applicationName: "answer-time",
      poolSize: 2,
      keepsPlans: true,
      answerTimeoutMs: 400,
      log: createLogger({ component: "test", level: "silent" }),
      signal: new AbortController().signal,
    });
    await database.query("CREATE TABLE kept (id int PRIMARY KEY)");
  });

  afterAll(async () => {
    await proxy.heal();
    await database.close();
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
      expect(await database.query(text, parameters)).toEqual([{ value: 7 }]);
    },
  );

  it("costs a transaction, of which nothing stays", async () => {
    const work = database.transaction(async (tx) => {
      await tx.query("INSERT INTO kept VALUES (1)");
      proxy.hold("up", "down");
      await tx.query("INSERT INTO kept VALUES (2)");
    });
    await expect(work).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE", retriable: true });
    await proxy.heal();
    expect(await database.query("SELECT id FROM kept")).toEqual([]);
  });

  it("leaves open whether a commit happened", async () => {
    const work = database.transaction(async (tx) => {
      await tx.query("INSERT INTO kept VALUES (3)");
      proxy.hold("down");
    });
    await expect(work).rejects.toThrow(UNANSWERED);
    await proxy.heal();
    expect(await database.query("SELECT id FROM kept")).toEqual([{ id: 3 }]);
  });
});
