/** Commands about a ledger whose home is not there: a slip in its name, mostly. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { runOpenMatters } from "../../../../cli/commands/ledger-decisions.js";
import { runReconcile } from "../../../../cli/ledger/reconcile.js";
import type { LedgerCommand } from "../../../../cli/ledger/ledger-tools.js";

const command: LedgerCommand = {
  home: "/nowhere/causeway",
  portOffset: 0,
  json: false,
  env: {},
  signal: new AbortController().signal,
  print: () => undefined,
};

describe("a command about a ledger", () => {
  it.each([
    ["that needs no node", () => runOpenMatters(command)],
    ["that needs one", () => runReconcile(command)],
  ])("%s says that there is no home", async (_which, run) => {
    await expect(run()).rejects.toMatchObject({
      code: "HOME_INCOMPLETE",
      message:
        "There is no home in /nowhere/causeway: --home names another one, npm start makes one.",
    });
  });

  it("says of a node's home that no ledger is in it", async () => {
    const home = mkdtempSync(join(tmpdir(), "node-home-"));
    try {
      mkdirSync(join(home, "config"));
      writeFileSync(join(home, "config", "genesis.json"), "{}");
      await expect(runOpenMatters({ ...command, home })).rejects.toMatchObject({
        code: "HOME_INCOMPLETE",
        message: `${home} is the home of a node alone and has no ledger: --home names a kit's home.`,
      });
    } finally {
      rmSync(home, { recursive: true });
    }
  });
});
