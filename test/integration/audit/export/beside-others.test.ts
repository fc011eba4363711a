/** Exports beside whoever else writes, and where none can be written: they are whole, or there is none. */
import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { Client } from "pg";
import { nextLink, rowDigest } from "../../../../ledger/tamper/link-rules.js";
import { readUnlinked } from "../../../../ledger/tamper/linked-rows.js";
import { readHead } from "../../../../ledger/tamper/chainer.js";
import { beginLook } from "../../../../ledger/tamper/read-export.js";
import { until } from "../../../helpers/until.js";
import { compiledFolder } from "../../../helpers/services/services.js";
import { ExportedBooks } from "./exported-books.js";

let books: ExportedBooks;
beforeAll(async () => {
  books = await ExportedBooks.open();
});
afterAll(() => books?.close());

/** Entries about customers' coins that no chainer has seen yet, each of one unit. */
async function addEntries(count: number): Promise<void> {
  await books.bench.ledger.owner.query(
    `WITH entry AS (
       INSERT INTO journal_entry (kind, idem_key)
       SELECT 'ledger.adjustment', gen_random_uuid()::text FROM generate_series(1, $1::integer)
       RETURNING id)
     INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
     SELECT id, 0, 'TOKEN', 'equity:adjustment', 'liability:customer:alice', 1 FROM entry`,
    [count],
  );
}

it("hold all rows where a watcher links the first of them in the same moment", async () => {
  const { database, owner, url } = books.bench.ledger;
  // As many as an update finds that links a kind of rows for the first time.
  await addEntries(12_000);
  const [first] = await readUnlinked(owner, "entry", { limit: 1, reach: "all" });
  if (first === undefined) throw new Error("there is no row to link");
  const { kind, key, row } = first;
  const link = nextLink(await readHead(database), { kind, key, digest: rowDigest(row) });
  const other = new Client({ connectionString: url });
  await other.connect();
  try {
    await other.query("BEGIN");
    await other.query(
      `INSERT INTO chain_link (n, kind, row_key, digest, previous, hash)
       VALUES ($1, $2, $3, $4, $5, $6)`,
      [link.n, link.kind, link.key, link.digest, link.previous, link.hash],
    );
    const exported = books.exported(url);
    const isWaiting = async () => {
      const waiting = await owner.query(
        `SELECT 1 FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event = 'transactionid'`,
      );
      return waiting.length > 0;
    };
    await until(isWaiting, { timeoutMs: 60_000, what: "the export meets the other chainer" });
    await other.query("COMMIT");
    const { code, lines } = await books.verdictOf(await exported);
    expect([code, lines]).toEqual([0, [expect.stringMatching(/^Nothing was changed/)]]);
  } finally {
    await other.end();
  }
});

/** `causeway audit export` in a process that may write files of so many halves of a KiB. */
async function exportWithin(room: number, file: string): Promise<{ code: number; said: string }> {
  const main = join(await compiledFolder(), "cli", "main.js");
  const words = ["audit", "export", "--out", file, "--home", books.home];
  const env = { ...process.env, DATABASE_URL: books.copy.url };
  const limited = `ulimit -f ${room}; exec "$@"`;
  return new Promise((resolve) => {
    execFile(
      "/bin/sh",
      ["-c", limited, "sh", process.execPath, main, ...words],
      { env },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), said: stdout + stderr });
      },
    );
  });
}

it("are no files where the disk has no room for all of it", async () => {
  const file = join(books.home, "no-room.jsonl");
  // Of what is written at once the system writes what has room, and says how much that was.
  for (const room of [8, 0]) {
    const { code, said } = await exportWithin(room, file);
    expect([code, said]).toEqual([2, expect.stringContaining(`Cannot write ${file}: EFBIG`)]);
    expect(existsSync(file)).toBe(false);
  }
  expect(await exportWithin(20_000, file)).toMatchObject({ code: 0 });
  expect((await books.verdictOf(file)).code).toBe(0);
  writeFileSync(file, "another one's");
  const { code, said } = await exportWithin(20_000, file);
  expect([code, said]).toEqual([2, expect.stringContaining("a file of that name is there")]);
});

it("wait for a slow disk, as no other transaction may for its client", async () => {
  const idle = `SELECT current_setting('idle_in_transaction_session_timeout') AS idle`;
  const { owner } = books.bench.ledger;
  const found = await owner.transaction(async (tx) => {
    await beginLook(tx);
    return tx.query(idle);
  });
  expect([found, await owner.query(idle)]).toEqual([[{ idle: "1h" }], [{ idle: "5s" }]]);
});

it("end on a ledger that is written to all the time", async () => {
  const most = 3_000;
  const over = new AbortController();
  let written = 0;
  const writer = (async () => {
    while (written < most && !over.signal.aborted) {
      await addEntries(1);
      written += 1;
    }
  })();
  const exported = await books.exported(books.bench.ledger.url);
  const writtenMeanwhile = written;
  over.abort();
  await writer;
  expect(writtenMeanwhile).toBeLessThan(most);
  expect((await books.verdictOf(exported)).code).toBe(0);
});

it("hold what somebody put before the first row", async () => {
  await books.tamper(
    `INSERT INTO policy_listing (id, customer_id, destination, listed) OVERRIDING SYSTEM VALUE
     VALUES (-5, 'alice', '0x${"66".repeat(20)}', true)`,
  );
  const { code, lines } = await books.verdictOf(await books.exported(books.copy.url));
  expect([code, lines]).toEqual([2, [expect.stringContaining(">=0")]]);
});
