/** Background work of one process at a time, whose rounds may last longer than its lease. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { runLeased } from "../../../ledger/leased-loop.js";
import { openTestLedger, silentLog, type TestLedger } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";

/** Long enough that a busy machine renews it in time. */
const LEASE_MS = 9_000;

let ledger: TestLedger;
let controller: AbortController;

beforeEach(async () => {
  ledger = await openTestLedger();
  controller = new AbortController();
});
afterEach(() => ledger.drop());

const run = (owner: string, round: (signal: AbortSignal) => Promise<boolean>) =>
  runLeased(
    {
      task: "reconcile",
      owner,
      database: ledger.database,
      log: silentLog,
      pauseMs: 50,
      leaseMs: LEASE_MS,
    },
    round,
    controller.signal,
  );

async function lease(): Promise<{ readonly owner: string; readonly endsMs: number } | undefined> {
  const [row] = await ledger.database.query<{ owner: string; ends: string }>(
    `SELECT owner, extract(epoch FROM expires_at) * 1000 AS ends FROM task_lease`,
  );
  return row === undefined ? undefined : { owner: row.owner, endsMs: Number(row.ends) };
}

it("is done by no second process while a round of the first one lasts", async () => {
  const rounds: string[] = [];
  let end: () => void = () => undefined;
  const lasting = new Promise<void>((resolve) => {
    end = resolve;
  });
  const loops = [
    run("one", async () => {
      rounds.push("one");
      await lasting;
      return false;
    }),
  ];
  await until(() => rounds.length > 0, { timeoutMs: 30_000 });
  const first = await lease();
  loops.push(
    run("two", async () => {
      rounds.push("two");
      return false;
    }),
  );
  const hasMoved = async () => ((await lease())?.endsMs ?? 0) > (first?.endsMs ?? 0);
  await until(hasMoved, { timeoutMs: 60_000, what: "the lease is renewed, or taken over" });
  expect([(await lease())?.owner, rounds]).toEqual(["one", ["one"]]);
  controller.abort();
  end();
  await Promise.all(loops);
});

it("ends where another process has taken it over", async () => {
  let reason: unknown;
  const loop = run("one", (signal) => {
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        reason ??= signal.reason;
        reject(new Error("torn off"));
      });
    });
  });
  await until(async () => (await lease()) !== undefined, { timeoutMs: 30_000 });
  await ledger.database.query(
    `UPDATE task_lease
        SET owner = 'two', expires_at = clock_timestamp() + $1::integer * interval '1 millisecond'`,
    [LEASE_MS],
  );
  await until(() => reason !== undefined, { timeoutMs: 60_000 });
  expect(reason).toMatchObject({ code: "TASK_LEASE_LOST" });
  controller.abort();
  await loop;
});
