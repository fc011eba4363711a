/** A kill switch that outlives a recovery. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { readFreeze } from "../../../ledger/withdrawals/signing-freeze.js";
import { Desk, destination, TOKEN, WALLET } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const FIELDS = { customer: "alice", to: destination(1), amountAtoken: TOKEN };

describe("the kill switch", () => {
  it("stays as a person left it when a ledger is recovered", async () => {
    const backup = await desk.backup();
    await desk.request({ key: "a", ...FIELDS });
    await desk.work();
    rmSync(join(desk.home, "data"), { recursive: true, force: true });
    await desk.useDatabase(backup);
    await desk.lane().runRound(desk.signal);
    expect((await readFreeze(desk.database, WALLET)).reason).toContain("the chain knows nonces");
    await desk.causeway("withdrawals", "freeze", "--reason", "the key may be stolen");
    await desk.watch();
    await desk.causeway("recover", "--declare", "restored", "--apply", "--operator", "bea");
    expect((await readFreeze(desk.database, WALLET)).frozen).toBe(true);
  });
});
