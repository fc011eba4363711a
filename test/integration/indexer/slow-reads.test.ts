/** Questions that take as long as they may: who asks for something else does not wait for them. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { READ_CONNECTIONS, readsInTurns } from "../../../indexer/api/index-reads.js";
import { MOST_COUNTED } from "../../../indexer/api/server.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { openDatabase } from "../../../runtime/sql/sql.js";
import { IndexerStage } from "../../helpers/indexer/indexer.js";
import { freePort } from "../../helpers/ports.js";

/** More than there are connections to the database. */
const SLOW = 24;

let stage: IndexerStage;

beforeAll(async () => {
  stage = await IndexerStage.open();
  const port = await freePort();
  stage.url = `http://127.0.0.1:${port}`;
  stage.launch(port);
  await stage.mine();
  await stage.indexed();
});
afterAll(() => stage.close());

async function ask(path: string): Promise<{ status: number; code: string | undefined }> {
  const response = await fetch(`${stage.url}/v1${path}`);
  const { code } = (await response.json()) as { readonly code?: string };
  return { status: response.status, code };
}

it("leave the index to others", async () => {
  const statement = `/addresses/${stage.faucet.address}/statement`;
  // Whoever reads this table waits for as long as a statement may take.
  await stage.sql.query("BEGIN");
  await stage.sql.query("LOCK TABLE indexer.correction IN ACCESS EXCLUSIVE MODE");
  const slow = Array.from({ length: SLOW }, () => ask(statement));
  for (const one of slow) one.catch(() => undefined);
  for (let turn = 0; turn < 3; turn++) {
    expect(await ask("/blocks/latest")).toEqual({ status: 200, code: undefined });
  }
  for (const { status, code } of await Promise.all(slow)) {
    expect(status).toBe(503);
    expect(["ANSWER_TOO_SLOW", "TOO_MANY_READS"]).toContain(code);
  }
  await stage.sql.query("ROLLBACK");
  expect(await ask(statement)).toEqual({ status: 200, code: undefined });
});

it("are slow by all their statements together", async () => {
  const { signal } = new AbortController();
  const database = await openDatabase({
    url: stage.databaseUrl,
    migrations: [],
    applicationName: "test",
    poolSize: READ_CONNECTIONS,
    log: createLogger({ component: "test", level: "silent" }),
    signal,
  });
  try {
    // Of these none is too long by itself.
    const statements = 4;
    const ended: number[] = [];
    const last = await readsInTurns(database).snapshot(
      async (sql) => {
        const run = ended.push(0) - 1;
        for (let statement = 1; statement <= statements; statement++) {
          await sql.query("SELECT pg_sleep(0.3)");
          ended[run] = statement;
        }
        return run;
      },
      { signal, remoteAddress: "192.0.2.1" },
    );
    expect({ last, ended }).toEqual({ last: 1, ended: [1, statements] });
  } finally {
    await database.close();
  }
});

it("are not those of the status, which counts up to a number", async () => {
  await stage.sql.query(
    `INSERT INTO indexer.correction
     SELECT int8send(i), int8send(i), -1, 1, 1, 2 FROM generate_series(1, ${MOST_COUNTED + 7}) i`,
  );
  expect((await stage.get("/status")).status).toMatchObject({ corrections: MOST_COUNTED });
  await stage.sql.query("DELETE FROM indexer.correction WHERE address > int8send(3)");
  expect((await stage.get("/status")).status).toMatchObject({ corrections: 3 });
});
