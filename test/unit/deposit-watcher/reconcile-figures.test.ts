/** What a watcher's page tells of the last comparison, where there is none, or no database to ask. */
import { expect, it } from "@jest/globals";
import { registerReconcileFigures } from "../../../deposit-watcher/reconcile-loop.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";

/** The figures over a database that answers so; `pass` lets time go by. */
function figuresOver(query: () => Promise<unknown>) {
  const metrics = createMetrics({ processMetrics: false });
  let nowMs = 5_000;
  const clock = { monotonicMs: () => nowMs };
  registerReconcileFigures(metrics, { database: { query } as unknown as SqlDatabase, clock });
  const samples = async () =>
    (await metrics.page()).split("\n").filter((line) => line.startsWith("causeway_reconcile_"));
  return { samples, pass: (ms: number) => (nowMs += ms) };
}

it("grows in age from the process's start, as long as nothing was ever compared", async () => {
  const { samples, pass } = figuresOver(async () => []);
  pass(901_000);
  expect(await samples()).toEqual([
    "causeway_reconcile_age_seconds 901",
    "causeway_reconcile_clean -1",
    "causeway_reconcile_height -1",
    "causeway_reconcile_findings -1",
  ]);
});

it("is nothing while the database cannot be asked", async () => {
  const run = { id: "1", at: new Date(0), height: "7", clean: true, findings: [], assets: [] };
  let isAway = false;
  const { samples } = figuresOver(async () => {
    if (isAway) throw new Error("gone");
    return [{ ...run, age_ms: "2000" }];
  });
  expect(await samples()).toContain("causeway_reconcile_clean 1");
  isAway = true;
  expect(await samples()).toEqual([]);
});
