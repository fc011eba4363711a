/** The kill switch where a session of somebody keeps a lock that it needs, as any role of the database may. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { readKillSwitch, setKillSwitch } from "../../../ledger/kill-switch/kill-switch.js";
import { House } from "../../helpers/exchange/house.js";
import { standing } from "../../helpers/services/ledger.js";

let house: House;

beforeEach(async () => {
  house = await House.open();
});
afterEach(() => house.close());

it.each([
  ["its own lock", "SELECT pg_advisory_xact_lock(8083000009)"],
  ["a wallet's switch", "SELECT 1 FROM signing_freeze FOR UPDATE"],
])("is told to be unheard, and does not hang, behind %s", async (_what, statement) => {
  await house.lane().runRound(house.signal);
  const wanted = { level: "stop-sign", reason: "a key has leaked", by: "ann" } as const;
  await standing(house.ledger.owner, async (tx) => {
    await tx.query(statement);
    await expect(setKillSwitch(house.database, wanted)).rejects.toMatchObject({
      code: "DATABASE_UNAVAILABLE",
      message: expect.stringContaining("lock timeout"),
    });
  });
  expect((await readKillSwitch(house.database)).level).toBe("none");
  await setKillSwitch(house.database, wanted);
  expect((await readKillSwitch(house.database)).level).toBe("stop-sign");
});
