/** What a watcher's page tells of the chain of hashes: while another watcher links, and on a busy ledger. */
import { expect, it } from "@jest/globals";
import { runLinkLoop } from "../../../deposit-watcher/link-loop.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";

/** Rows that one look takes of a kind, as the chainer's. */
const BATCH_ROWS = 2_000;

const NOW_SECONDS = 1_800_000_000;

const COMPLETE = `causeway_chain_complete_timestamp_seconds ${NOW_SECONDS}`;

/** A loop on a stub of a database, whose monotonic clock stands still. */
function startLoop(query: (text: string, values: readonly unknown[]) => readonly unknown[]) {
  const metrics = createMetrics({ processMetrics: false });
  const controller = new AbortController();
  const answer = async (text: string, values: readonly unknown[] = []) => query(text, values);
  const running = runLinkLoop(
    {
      database: { query: answer } as unknown as SqlDatabase,
      owner: "this one",
      log: silentLog,
      metrics,
      clock: { nowMs: () => NOW_SECONDS * 1_000, monotonicMs: () => 0 },
    },
    controller.signal,
  );
  const stop = async () => {
    controller.abort();
    await running;
  };
  return { metrics, stop };
}

/**
 * A ledger with one new event whenever events are looked for.
 * @param waiting events that are there before the first look at all
 */
function busyLedger({ waiting }: { readonly waiting: number }) {
  let newest = 0;
  const seen = { looksAtAll: 0, linked: 0 };
  const events = (count: number) =>
    Array.from({ length: count }, () => {
      newest += 1;
      return { key: String(newest), f0: "an event" };
    });
  const query = (text: string, values: readonly unknown[]): readonly unknown[] => {
    if (text.includes("INSERT INTO task_lease")) return [{ task: "link-chain" }];
    if (text.includes("SELECT key, value FROM meta")) {
      return ["ledger_id", "genesis_hash"].map((key) => ({ key, value: "some" }));
    }
    if (text.includes("INSERT INTO chain_link")) {
      seen.linked += (values[0] as readonly number[]).length;
      return [];
    }
    if (!text.includes("FROM event r\n")) return [];
    const isAll = values[1] === null;
    if (isAll) seen.looksAtAll += 1;
    const isFirst = isAll && seen.looksAtAll === 1;
    return events(isFirst ? Math.min(waiting, BATCH_ROWS) : 1);
  };
  return { query, seen };
}

it("is nothing of this process's: what it saw last grows old", async () => {
  let asked = 0;
  // Every statement finds the lease with another watcher.
  const { metrics, stop } = startLoop(() => {
    asked += 1;
    return [];
  });
  try {
    metrics.gauge("causeway_chain_links", "as the loop left them when it held the lease").set(7);
    await until(() => asked > 1, { timeoutMs: 10_000 });
    expect(await metrics.page()).not.toMatch(/^causeway_chain_/m);
  } finally {
    await stop();
  }
});

it.each([
  ["for what was there, whatever is written meanwhile", 1, 1],
  ["only once a look has come to the end of what was there", BATCH_ROWS, 2],
])("is complete on a busy ledger: %s", async (_what, waiting, looksAtAll) => {
  const { query, seen } = busyLedger({ waiting });
  const { metrics, stop } = startLoop(query);
  try {
    // The clock stands still: who looks on would never be done.
    await until(
      async () => seen.looksAtAll > looksAtAll || (await metrics.page()).includes(COMPLETE),
      { timeoutMs: 10_000, what: "the chain is told complete, or looked at further" },
    );
    expect(await metrics.page()).toContain(COMPLETE);
    expect(seen.looksAtAll).toBe(looksAtAll);
    expect(seen.linked).toBeGreaterThanOrEqual(waiting);
  } finally {
    await stop();
  }
});
