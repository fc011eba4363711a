/** Fees by day: a day is whole, or it is left out and the answer says from when on days are whole. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { HOT_WALLET, NATIVE_ASSET, NETWORK_FEE } from "../../../ledger/journal/accounts.js";
import { readFeeDays } from "../../../ledger/books/fee-days.js";
import { openTestLedger, type TestLedger } from "../../helpers/services/ledger.js";

const FROM = new Date("2026-03-01T00:00:00Z");

let ledger: TestLedger;
beforeAll(async () => {
  ledger = await openTestLedger();
});
afterAll(() => ledger.drop());

/** Entries of these moments in this order; each but those of a crowd paid a fee of one unit. */
async function entries(moment: string, count: number, paid = true): Promise<void> {
  await ledger.database.query(
    `WITH made AS (
       INSERT INTO journal_entry (kind, idem_key, effective_height, posted_at)
       SELECT 'test', gen_random_uuid()::text, 1, $1::timestamptz FROM generate_series(1, $2)
       RETURNING id)
     INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
     SELECT id, 0, $3, $4, $5, 1 FROM made WHERE $6`,
    [moment, count, NATIVE_ASSET, NETWORK_FEE, HOT_WALLET, paid],
  );
}

it("counts a day wholly or leaves it out, and says from when on", async () => {
  await entries("2026-03-01T10:00:00Z", 2);
  await entries("2026-03-02T10:00:00Z", 3);
  // Its number is lower than that of an entry of the day before: their transactions overlapped.
  await entries("2026-03-04T00:00:00Z", 1);
  await entries("2026-03-03T23:59:59Z", 4);
  const days = async () => {
    const found = await readFeeDays(ledger.database, FROM);
    const units = found.days.map(({ day, networkFeeUnits }) => [day, networkFeeUnits]);
    return { from: found.from.toISOString().slice(0, 10), units };
  };
  expect(await days()).toEqual({
    from: "2026-03-01",
    units: [
      ["2026-03-04", 1n],
      ["2026-03-03", 4n],
      ["2026-03-02", 3n],
      ["2026-03-01", 2n],
    ],
  });
  await entries("2026-03-05T10:00:00Z", 5);
  await entries("2026-03-05T11:00:00Z", 100_000 - 5 - 4 - 1 - 2, false);
  // One of three entries of the second day is beyond what is looked at.
  expect(await days()).toEqual({
    from: "2026-03-03",
    units: [
      ["2026-03-05", 5n],
      ["2026-03-04", 1n],
      ["2026-03-03", 4n],
    ],
  });
  await entries("2026-03-05T12:00:00Z", 3, false);
  // What is left out last is of the fourth day, and behind it one of the third is looked at.
  expect(await days()).toEqual({ from: "2026-03-05", units: [["2026-03-05", 5n]] });
});
