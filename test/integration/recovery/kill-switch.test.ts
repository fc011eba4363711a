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

  it("keeps what a chain has lost from being sent again, until it is lifted", async () => {
    const kept = desk.chain.head;
    const { id } = await desk.request({ key: "a", ...FIELDS });
    await desk.work();
    await desk.watch();
    expect((await desk.read(id)).status).toBe("settled");
    await desk.loseAbove(kept);
    const why = ["--reason", "the key may be stolen", "--operator", "bea"];
    await desk.causeway("killswitch", "set", "stop-broadcast", ...why);
    const stopped = await desk.causeway("recover", "--apply");
    expect([stopped.code, stopped.text]).toEqual([1, expect.stringContaining("NOT SENT")]);
    desk.chain.mine();
    await desk.watch();
    expect(desk.paidAtoken(destination(1))).toBe(0n);
    await desk.causeway("killswitch", "lift", ...why);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    desk.chain.mine();
    await desk.watch();
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    expect(await desk.breaks()).toBe("");
  });
});
