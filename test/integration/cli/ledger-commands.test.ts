import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { runDepositsResume, runDepositsStatus } from "../../../cli/commands/deposits.js";
import type { LedgerCommand } from "../../../cli/ledger/ledger-tools.js";
import { runReconcile } from "../../../cli/ledger/reconcile.js";
import { runTokenStates } from "../../../cli/commands/tokens/state.js";
import { HOT, STRANGER, WatcherBench } from "../../helpers/services/watcher.js";
import { recordIncident } from "../../helpers/services/ledger.js";

let bench: WatcherBench;
let home: string;
let printed: string[];

beforeEach(async () => {
  bench = await WatcherBench.open();
  home = mkdtempSync(join(tmpdir(), "causeway-cli-"));
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: HOT.slice(2) }));
  printed = [];
});
afterEach(async () => {
  await bench.close();
  rmSync(home, { recursive: true, force: true });
});

function command(json: boolean): LedgerCommand {
  return {
    home,
    portOffset: 0,
    json,
    env: {
      DATABASE_URL: bench.ledger.url,
      CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: bench.chain.url,
      CAUSEWAY_WATCHER_WATCHER_POLL_INTERVAL_MS: "400",
    },
    signal: new AbortController().signal,
    print: (text) => void printed.push(text),
  };
}

describe("causeway reconcile", () => {
  it("exits 0 on clean books, after the watcher has seen what is mined now", async () => {
    const { address } = await bench.register("alice");
    bench.start();
    bench.pay([address, 5n]);
    expect(await runReconcile(command(true))).toBe(0);
    const report = JSON.parse(printed.join(""));
    expect(report).toMatchObject({ clean: true, height: 1, behindBlocks: 0 });
    expect(report.lines[0]).toMatchObject({
      account: `asset:wallet:${HOT}`,
      chainAtoken: "1000000",
    });
  });

  it("exits 1 right after coins left the hot wallet, naming transaction and amount", async () => {
    bench.start();
    const theft = bench.chain.payment(HOT, STRANGER, 1_000n, 21n);
    bench.chain.mine([theft]);
    expect(await runReconcile(command(false))).toBe(1);
    expect(printed.join("\n")).toContain(`${theft.hash} in block 1: chain -1021 atoken`);
  });

  it("compares at the cursor and says so while no watcher runs", async () => {
    const running = bench.start();
    await bench.caughtUp();
    await running.stop();
    bench.chain.mine();
    expect(await runReconcile(command(false))).toBe(0);
    expect(printed.join("\n")).toContain("the watcher has not booked: 1.");
  });

  it("ends with a fault, and no report, where no block is booked", async () => {
    await expect(runReconcile(command(true))).rejects.toMatchObject({
      code: "NOTHING_COMPARED",
      message: expect.stringContaining("no block is booked yet"),
    });
    expect(printed).toEqual([]);
  });

  it("ends with a fault where the node has no block at the cursor's height", async () => {
    const running = bench.start();
    bench.chain.mine();
    await bench.caughtUp();
    await running.stop();
    bench.chain.rollBack(0);
    await expect(runReconcile(command(true))).rejects.toMatchObject({
      code: "NOTHING_COMPARED",
      message: expect.stringContaining("the node has no block 1"),
    });
    expect(printed).toEqual([]);
  });

  it("refuses a node of another chain", async () => {
    bench.chain.chainId = 6941n;
    await expect(runReconcile(command(false))).rejects.toMatchObject({ code: "FOREIGN_LEDGER" });
  });
});

describe("causeway deposits", () => {
  it("shows an incident with exit code 1, resumes once, and then shows none", async () => {
    await recordIncident(bench.ledger.database, {
      kind: "PARENT_MISMATCH",
      height: 5,
      message: "block 5 does not follow block 4",
      details: {},
    });
    expect(await runDepositsStatus(command(false))).toBe(1);
    expect(printed.join("")).toContain("block 5 does not follow block 4");
    expect(await runDepositsResume(command(false))).toBe(0);
    printed = [];
    expect(await runDepositsStatus(command(true))).toBe(0);
    expect(JSON.parse(printed.join(""))).toMatchObject({ incident: null });
    expect(await runDepositsResume(command(false))).toBe(0);
    expect(printed.at(-1)).toBe("Nothing was halted.");
  });

  it("is looked at and resumed while the node does not answer, or is of another chain", async () => {
    await recordIncident(bench.ledger.database, {
      kind: "BALANCE_MISMATCH",
      height: 5,
      message: "a balance of block 5 is another one",
      details: {},
    });
    const away = command(false);
    const env = { ...away.env, CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: "http://127.0.0.1:9" };
    expect(await runDepositsStatus({ ...away, env })).toBe(1);
    expect(printed.join("")).toContain("a balance of block 5 is another one");
    expect(await runTokenStates({ ...away, env })).toBe(0);
    bench.chain.chainId = 6941n;
    expect(await runDepositsResume(away)).toBe(0);
    expect(await runDepositsStatus(away)).toBe(0);
  });
});
