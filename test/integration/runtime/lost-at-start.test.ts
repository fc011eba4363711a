/** A database that is lost while a process opens it: it is opened all the same, and migrated once. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { LEDGER_MIGRATIONS, openLedger } from "../../../ledger/database.js";
import { findIdentity } from "../../../ledger/find-identity.js";
import { parseHash32 } from "../../../chain/hex.js";
import { openPatiently } from "../../../runtime/sql/opening.js";
import { SqlError } from "../../../runtime/sql/sql-errors.js";
import { type CommitCut, TcpProxy } from "../../helpers/faults/proxy/tcp-proxy.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";
import { silentLog as log } from "../../helpers/services/ledger.js";

const { signal } = new AbortController();
const identity = { chainId: 6_940n, genesisHash: parseHash32(`0x${"17".repeat(32)}`) };
const lost = new SqlError("DATABASE_UNAVAILABLE", "the connection is lost", { retriable: true });

let database: TestDatabase;
let proxy: TcpProxy;

beforeEach(async () => {
  database = await createTestDatabase();
  const { hostname: host, port } = new URL(database.url);
  proxy = await TcpProxy.start({ host, port: Number(port) });
});
afterEach(async () => {
  await proxy.close();
  await database.drop();
});

it("is migrated once, whichever side of a commit a connection ends on", async () => {
  const cuts: (CommitCut | undefined)[] = ["before", undefined, "after", "after", "before"];
  proxy.cutCommits(() => cuts.shift());
  const ledger = await openLedger({ url: proxy.through(database.url), log, signal, identity });
  try {
    const rows = await ledger.query<{ name: string }>(`SELECT name FROM schema_migration`);
    expect(rows.map(({ name }) => name).toSorted()).toEqual(
      LEDGER_MIGRATIONS.map((migration) => new migration().name).toSorted(),
    );
    expect(cuts).toEqual([]);
  } finally {
    await ledger.close();
  }
});

it("is waited for as long as is said, and every other fault ends the start", async () => {
  let calls = 0;
  const failing = (error: Error) => async () => {
    calls += 1;
    throw error;
  };
  const patience = { log, signal, startTimeoutMs: 400 };
  await expect(openPatiently(failing(lost), patience)).rejects.toBe(lost);
  expect(calls).toBeGreaterThan(1);
  calls = 0;
  const other = new Error("the tables are of another release");
  await expect(openPatiently(failing(other), patience)).rejects.toBe(other);
  expect(calls).toBe(1);
});

it("tells its chain as soon as it can be read, while the node does not answer", async () => {
  let questions = 0;
  const waits: unknown[] = [];
  const found = await findIdentity({
    ask: async () => {
      questions += 1;
      // At the first question there is no ledger yet.
      if (questions === 2)
        await (await openLedger({ url: database.url, log, signal, identity })).close();
      throw new Error("the node is down");
    },
    isFinal: () => false,
    onWait: (error) => waits.push(error),
    url: database.url,
    log,
    signal,
  });
  expect(found).toEqual(identity);
  // At the second question the ledger said it.
  expect([questions, waits]).toEqual([2, [new Error("the node is down")]]);
});
