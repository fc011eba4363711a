/** A file in the home that is no keystore: it hides a wallet, and keeps nobody from stopping payments. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { readKillSwitch } from "../../../ledger/kill-switch/kill-switch.js";
import { readSwitchCause } from "../../../ledger/requests/signing-freeze.js";
import { Desk, WALLET } from "../recovery/desk.js";

const NAMED = expect.stringContaining("copied.json");

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  mkdirSync(join(desk.home, "config", "wallets"));
  writeFileSync(join(desk.home, "config", "wallets", "copied.json"), "{}");
});
afterEach(() => desk.close());

it("lets the kill switch be set in the ledger, too, and keys be taken back", async () => {
  const why = ["--reason", "a key has leaked", "--operator", "ann"];
  const set = await desk.causeway("killswitch", "set", "stop-sign", ...why);
  expect([set.code, set.text]).toEqual([0, expect.stringContaining("stop-sign")]);
  expect((await readKillSwitch(desk.database)).level).toBe("stop-sign");
  const made = await desk.causeway("keys", "create", "--scope", "deposits:read", "--json");
  const { id } = JSON.parse(made.text);
  expect((await desk.causeway("keys", "revoke", id)).code).toBe(0);
});

it("is named by a freeze that has frozen all the same, and by what would overlook coins", async () => {
  const freeze = desk.causeway("withdrawals", "freeze", "--reason", "a key has leaked");
  await expect(freeze).rejects.toMatchObject({ code: "INVALID_WALLET_FILE", message: NAMED });
  expect((await readSwitchCause(desk.database, WALLET))?.reason).toBe("a key has leaked");
  for (const words of [["wallets", "list"], ["withdrawals", "list"], ["reconcile"]]) {
    await expect(desk.causeway(...words)).rejects.toMatchObject({ message: NAMED });
  }
});
