/** Exit codes of checks: 1 says that something is false, which a misspelt word does not. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { expect, it } from "@jest/globals";
import { compiledFolder } from "../../helpers/services/services.js";

async function endOf(...words: readonly string[]): Promise<unknown> {
  const main = path.join(await compiledFolder(), "cli", "main.js");
  const ended = await once(spawn(process.execPath, [main, ...words], { stdio: "ignore" }), "exit");
  return ended[0];
}

it.each([
  ["verify", "ledger", "export.jsonl", "--haed", "0x00"],
  ["verify", "ledger"],
  ["verify", "reserve", "file"],
  ["verify", "balance", "bundle.json", "--genessis", "file"],
  ["audit", "execution", "--form", "1"],
  ["audit", "reserves", "--nothing"],
  ["mesh-check", "--ulr", "http://127.0.0.1"],
  ["reconcile", "--jsn"],
  ["status", "--hom", "/srv/kit"],
  ["doctor", "--strickt"],
  ["recover", "--aply"],
  ["indexer", "verify", "--al"],
  ["tokens", "check", "GOLD"],
  ["tokens", "state", "GOLD"],
  ["deposits", "status", "--jsn"],
  ["withdrawals", "list", "--state", "frozen"],
  ["withdrawals", "show"],
  ["withdrawals", "cancel", "wd_1"],
  ["withdrawals", "approve", "wd_1"],
  ["withdrawals", "reject", "wd_1"],
  ["withdrawals", "release", "--reson", "looked"],
  ["killswitch", "show", "--jsn"],
  ["treasury", "status", "--jsn"],
  ["sweeps", "list", "--status", "frozen"],
  ["ledger", "open", "--jsn"],
  ["--port-offset", "100", "doctor"],
])("is 2 for %s %s %s", async (...words) => {
  expect(await endOf(...words)).toBe(2);
});

it.each([
  ["reconcile"],
  ["ledger", "open"],
  ["withdrawals", "list"],
  ["withdrawals", "show", "wd_1"],
  ["withdrawals", "approve", "wd_1", "--reason", "known payee"],
  ["withdrawals", "reject", "wd_1", "--reason", "unknown payee"],
  ["withdrawals", "release", "--reason", "looked"],
  ["indexer", "verify"],
  ["audit", "statement", "alice", "--from", "2026-11-31", "--to", "2026-12-02"],
  ["audit", "statement", "alice", "--from", "2026-11-02", "--to", "2026-11-01"],
])("is 2 where nothing could be looked at, as for %s %s", async (...words) => {
  expect(await endOf(...words, "--home", "/nowhere/of/a/kit")).toBe(2);
});

it("is 0 for help, and 1 for what judges nothing", async () => {
  expect(await endOf("verify", "ledger", "--help")).toBe(0);
  expect(await endOf("deposits", "lists")).toBe(1);
  expect(await endOf("deposits", "list", "--home", "/nowhere/of/a/kit")).toBe(1);
});
