/** Commands about a ledger whose home is not there: a slip in its name, mostly. */
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
});
