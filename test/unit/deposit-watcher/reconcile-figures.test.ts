/** Comparisons on a schedule: what a page tells of the last one, and when books are read at all. */
import { expect, it } from "@jest/globals";
import {
  findingTexts,
  type ReconcileLoopParts,
  registerReconcileFigures,
  runReconcileLoop,
} from "../../../deposit-watcher/reconcile-loop.js";
import { hasKept, recordRun } from "../../../ledger/books/reconcile-runs.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";

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

/** How often a loop that is due looks, and reads the books, which fails in the middle, while no time goes by. */
async function roundsOver(header: () => Promise<unknown>) {
  let [looks, reads] = [0, 0];
  const hash = `0x${"7".repeat(64)}`;
  const cursor = { height: "7", block_hash: hash, next_address_index: "0", rewinds: 0 };
  const query = async (text: string) => {
    if (text.includes("reconcile_run")) looks += 1;
    if (text.includes("posting")) throw new Error("not in a transaction");
    if (text.includes("watch_cursor")) return [cursor];
    return text.includes("INSERT INTO task_lease") ? [{ task: "reconcile" }] : [];
  };
  const transaction = async () => {
    reads += 1;
    throw new Error("the server went away");
  };
  const parts = {
    database: { query, transaction },
    node: { getBlockHeader: header },
    owner: "one",
    log: silentLog,
    intervalMs: 5,
    maxLagBlocks: 20,
    clock: { monotonicMs: () => 0 },
    isCatchingUp: () => false,
  };
  const controller = new AbortController();
  const loop = runReconcileLoop(parts as unknown as ReconcileLoopParts, controller.signal);
  try {
    await until(() => looks >= 5, { timeoutMs: 10_000 });
  } finally {
    controller.abort();
    await loop;
  }
  return reads;
}

it("reads no books while the node is away, or has not come to their last block", async () => {
  expect(await roundsOver(() => Promise.reject(new Error("refused")))).toBe(0);
  expect(await roundsOver(async () => undefined)).toBe(0);
});

it("reads them once in an interval where the comparison fails in the middle", async () => {
  expect(await roundsOver(async () => ({ hash: `0x${"7".repeat(64)}` }))).toBe(1);
});

it("keeps what is wrong inside the ledger, and since when, whatever else is too much to keep", async () => {
  const address = `0x${"a".repeat(40)}`;
  const line = (_: unknown, place: number) => {
    return { account: `wallet ${place}`, breaks: [{ address }], moreBreaks: 0 };
  };
  const report = {
    lines: Array.from({ length: 60 }, line),
    internalBreaks: [],
    tokens: [{ lines: [], internalBreaks: [{ what: "available GOLD" }] }],
  };
  const divergence = { address, height: 7, causes: [] };
  const findings = findingTexts(
    ...([report, [divergence]] as unknown as Parameters<typeof findingTexts>),
  );
  expect(findings).toHaveLength(62);
  const kept: string[] = [];
  const query = async (_: string, parameters: readonly unknown[]) => {
    if (parameters.length === 4) kept.push(...JSON.parse(String(parameters[2])));
    return [];
  };
  const run = { height: 9, clean: false, findings, assets: [] };
  await recordRun({ query }, run);
  expect(kept).toHaveLength(50);
  expect(kept[0]).toBe("inside the ledger: available GOLD");
  expect(kept[1]).toContain("differs since block 7");
  expect(kept[2]).toMatch(/^wallet 0: /);
  expect(kept.at(-1)).toBe("13 more findings");
});

it("knows findings again of which a run has kept the first ones", () => {
  const found = Array.from({ length: 60 }, (_, place) => `wallet ${place}`);
  const cut = { findings: ["since block 7", ...found.slice(0, 48), "12 more findings"] };
  const whole = { findings: found.slice(0, 50) };
  expect(hasKept(undefined, found)).toBe(false);
  expect(hasKept(cut, found)).toBe(true);
  expect(hasKept(whole, found.slice(0, 50))).toBe(true);
  expect(hasKept(whole, found)).toBe(false);
  // Another one before them, or in the place of one, and a run of which none is known again.
  expect(hasKept(cut, ["wallet a", ...found])).toBe(false);
  expect(hasKept(cut, found.toSpliced(7, 1, "wallet a"))).toBe(false);
  expect(hasKept({ findings: ["since block 7", "60 more findings"] }, found)).toBe(false);
});
