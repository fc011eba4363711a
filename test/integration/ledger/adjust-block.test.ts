/** `causeway ledger adjust --block`: no correction counts from a block that the ledger has not booked. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { readCursor } from "../../../ledger/deposits/watch-cursor.js";
import { Desk, TOKEN } from "../recovery/desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

function adjust(block: number) {
  const sides = ["--debit", "equity:opening_capital", "--credit", "liability:customer:alice"];
  const terms = ["--key", "goodwill", "--amount-atoken", String(TOKEN), "--block", `${block}`];
  const said = ["--reason", "a promise", "--operator", "ann"];
  return desk.causeway("ledger", "adjust", ...sides, ...terms, ...said);
}

it("takes the last booked block, and none above it", async () => {
  const { height } = await readCursor(desk.database);
  for (const block of [height + 1, 999_999_999]) {
    await expect(adjust(block)).rejects.toMatchObject({
      code: "INVALID_DECISION",
      message: `block ${block} is not booked yet: the ledger is at block ${height}`,
    });
  }
  expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
  expect((await adjust(height)).code).toBe(0);
  expect(await desk.availableAtoken("alice")).toBe(11n * TOKEN);
});

it("refuses it before a second person is asked", async () => {
  desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = "true";
  await expect(adjust(999_999_999)).rejects.toMatchObject({ code: "INVALID_DECISION" });
  expect((await desk.causeway("ledger", "decisions")).text).toBe("Nobody decided anything.");
});
