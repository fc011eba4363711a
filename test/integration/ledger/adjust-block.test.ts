/**
 * `causeway ledger adjust`: no correction counts from a block that the ledger has not booked, and none gives
 * to an identifier that stands for nobody.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { readLiabilities } from "../../../ledger/books/liabilities.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
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

it("gives nothing to an identifier that stands for nobody", async () => {
  const { height } = await readCursor(desk.database);
  for (const nobody of ["causeway:treasury", "causeway:suspense", "causeway:unassigned"]) {
    // As `treasury` and `unassigned` are: known to the table of customers.
    await desk.database.query(`INSERT INTO customer (id) VALUES ($1) ON CONFLICT DO NOTHING`, [
      nobody,
    ]);
    const sides = [
      "--debit",
      "liability:customer:alice",
      "--credit",
      `liability:customer:${nobody}`,
    ];
    const terms = ["--key", nobody, "--amount-atoken", String(TOKEN)];
    const said = ["--reason", "a word too many", "--operator", "ann"];
    await expect(
      desk.causeway("ledger", "adjust", ...sides, ...terms, ...said),
    ).rejects.toMatchObject({
      code: "INVALID_DECISION",
      message: `${nobody} stands for nobody`,
    });
  }
  expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
  const { liabilities } = await readLiabilities(desk.database, { height });
  expect(liabilities).toEqual([{ asset: "TOKEN", customerId: "alice", units: 10n * TOKEN }]);
});
