/** The record of reconciliations is bounded: the newest, and of older ones the newest with findings. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { recordRun } from "../../../ledger/books/reconcile-runs.js";
import { openLedger } from "../../../ledger/database.js";
import {
  openTestLedger,
  roleUrl,
  silentLog,
  TEST_IDENTITY,
  type TestLedger,
} from "../../helpers/services/ledger.js";

let ledger: TestLedger;

beforeEach(async () => {
  ledger = await openTestLedger(TEST_IDENTITY, "watcher");
});
afterEach(() => ledger?.drop());

const CLEAN = { height: 7, clean: true, findings: [], assets: [] };

/** Writes runs of a former time, by the interval that has passed since each; the broken ones by number. */
async function write(count: number, ago: string, broken: readonly number[] = []): Promise<void> {
  await ledger.owner.query(
    `INSERT INTO reconcile_run (at, height, clean, findings)
     SELECT now() - $2::interval, n, n <> ALL ($3::integer[]),
            CASE WHEN n = ANY ($3::integer[]) THEN '["it does not match"]' ELSE '[]' END::jsonb
       FROM generate_series(1, $1::integer) AS n ORDER BY n`,
    [count, ago, broken],
  );
}

async function ids(): Promise<readonly number[]> {
  const rows = await ledger.owner.query<{ id: number }>(
    `SELECT id::integer FROM reconcile_run ORDER BY id`,
  );
  return rows.map(({ id }) => id);
}

it("keeps the newest runs, and as many of those before that found something", async () => {
  await write(12, "2 days", [2, 3, 5]);
  await recordRun(ledger.database, CLEAN, 4);
  expect(await ids()).toEqual([2, 3, 5, 10, 11, 12, 13]);
  await recordRun(ledger.database, CLEAN, 2);
  expect(await ids()).toEqual([3, 5, 13, 14]);
});

it("forgets nothing of the last day, whoever asks for it", async () => {
  await write(4, "23 hours");
  await recordRun(ledger.database, CLEAN, 1);
  expect(await ids()).toEqual([1, 2, 3, 4, 5]);
  await expect(ledger.owner.query(`DELETE FROM reconcile_run WHERE id = 1`)).rejects.toMatchObject({
    message: expect.stringContaining("is of the last day"),
  });
  await expect(ledger.owner.query(`UPDATE reconcile_run SET clean = clean`)).rejects.toThrow();
  await expect(ledger.owner.query(`TRUNCATE reconcile_run`)).rejects.toThrow();
});

it("is cut by the process that writes it, and by no other", async () => {
  await write(4, "2 days");
  const { signal } = new AbortController();
  const url = roleUrl(ledger.ownerUrl, "worker");
  const worker = await openLedger({ url, log: silentLog, signal, identity: TEST_IDENTITY });
  try {
    await expect(worker.query(`SELECT prune_reconcile_runs(0, 10)`)).rejects.toThrow();
  } finally {
    await worker.close();
  }
  await expect(ledger.database.query(`DELETE FROM reconcile_run`)).rejects.toThrow();
  expect(await ids()).toEqual([1, 2, 3, 4]);
});
