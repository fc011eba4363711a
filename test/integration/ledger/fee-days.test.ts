/** Fees by day: a day is whole, or it is left out and the answer says from when on days are whole. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { HOT_WALLET, NATIVE_ASSET, NETWORK_FEE } from "../../../ledger/journal/accounts.js";
import { FeeTally, readFeeDays } from "../../../ledger/books/fee-days.js";
import { advanceCursor } from "../../../ledger/tamper/linked-rows.js";
import type { Sql } from "../../../runtime/sql/sql.js";
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

/** What is told where so many entries are looked at. */
async function told(
  maxEntries: number,
  since = FROM,
  tally = new FeeTally(),
  sql: Sql = ledger.database,
) {
  const found = await readFeeDays(sql, since, { tally, maxEntries });
  const units = found.days.map(({ day, networkFeeUnits }) => [day, networkFeeUnits]);
  return { from: found.from.toISOString(), units };
}

it("counts a day wholly or leaves it out, and says from when on", async () => {
  await entries("2026-03-01T10:00:00Z", 2);
  await entries("2026-03-02T10:00:00Z", 3);
  // Its number is lower than that of an entry of the day before: their transactions overlapped.
  await entries("2026-03-04T00:00:00Z", 1);
  await entries("2026-03-03T23:59:59Z", 4);
  expect(await told(100)).toEqual({
    from: "2026-03-01T00:00:00.000Z",
    units: [
      ["2026-03-04", 1n],
      ["2026-03-03", 4n],
      ["2026-03-02", 3n],
      ["2026-03-01", 2n],
    ],
  });
  await entries("2026-03-05T10:00:00Z", 5);
  await entries("2026-03-05T11:00:00Z", 100 - 5 - 4 - 1 - 2, false);
  // One of three entries of the second day is beyond what is looked at.
  expect(await told(100)).toEqual({
    from: "2026-03-03T00:00:00.000Z",
    units: [
      ["2026-03-05", 5n],
      ["2026-03-04", 1n],
      ["2026-03-03", 4n],
    ],
  });
  await entries("2026-03-05T12:00:00Z", 3, false);
  // What is left out last is of the fourth day, and behind it one of the third is looked at.
  const fifth = { from: "2026-03-05T00:00:00.000Z", units: [["2026-03-05", 5n]] };
  expect(await told(100)).toEqual(fifth);
});

it("counts the newest day however many entries it has, and is never from a time to come", async () => {
  const fifth = { from: "2026-03-05T00:00:00.000Z", units: [["2026-03-05", 5n]] };
  for (const maxEntries of [99, 10, 2, 1]) {
    expect({ maxEntries, ...(await told(maxEntries)) }).toEqual({ maxEntries, ...fifth });
  }
  // Far more entries than overlap, of which the first ones paid.
  await entries("2026-03-06T10:00:00Z", 7);
  await entries("2026-03-06T11:00:00Z", 2_500, false);
  expect(await told(2)).toEqual({
    from: "2026-03-06T00:00:00.000Z",
    units: [["2026-03-06", 7n]],
  });
  await entries("2026-03-07T00:00:00Z", 1);
  await entries("2026-03-06T23:59:59Z", 5);
  await entries("2026-03-07T10:00:00Z", 3);
  const seventh = { from: "2026-03-07T00:00:00.000Z", units: [["2026-03-07", 4n]] };
  expect(await told(2)).toEqual(seventh);
  // Nothing was paid since, and nobody asks for what was before.
  const later = new Date("2026-03-09T00:00:00Z");
  expect(await told(2, later)).toEqual({ from: later.toISOString(), units: [] });
});

it("counts no entry of a crowded day twice that is settled, and none of another ledger", async () => {
  await entries("2026-03-10T10:00:00Z", 40);
  const tally = new FeeTally();
  const [newest] = await ledger.database.query<{ id: string }>(
    "SELECT max(id)::text AS id FROM journal_entry",
  );
  const settled = Number(newest?.id) - 5;
  await advanceCursor(ledger.owner, "entry", settled);
  /** Numbers of entries between which fees were added up. */
  const ranges: unknown[] = [];
  const query: Sql["query"] = (text, values) => {
    if (text.includes("side.units")) ranges.push([values?.[1], values?.[5]]);
    return ledger.database.query(text, values);
  };
  const watched: Sql = Object.assign(Object.create(ledger.database), { query });
  const counted = async () => {
    const { units } = await told(15, FROM, tally, watched);
    return [units, ranges.splice(0)];
  };
  const [first, begun] = await counted();
  expect(first).toEqual([["2026-03-10", 40n]]);
  const open = [settled, Number.MAX_SAFE_INTEGER];
  // In parts of so many entries, up to where none can be missing.
  expect(begun).toContainEqual(open);
  expect(begun?.length).toBeGreaterThan(3);
  expect(await counted()).toEqual([[["2026-03-10", 40n]], [open]]);
  await entries("2026-03-10T11:00:00Z", 20);
  await advanceCursor(ledger.owner, "entry", settled + 10);
  expect(await counted()).toEqual([
    [["2026-03-10", 60n]],
    [
      [settled, settled + 10],
      [settled + 10, Number.MAX_SAFE_INTEGER],
    ],
  ]);
  // Who answers has another entry there: nothing that was counted is of this ledger.
  const other: Sql = Object.assign(Object.create(watched), {
    query: ((text, values) =>
      text.includes("idem_key AS key")
        ? Promise.resolve([{ key: "another" }])
        : query(text, values)) as Sql["query"],
  });
  const again = await told(15, FROM, tally, other);
  expect(again.units).toEqual([["2026-03-10", 60n]]);
  expect(ranges.length).toBeGreaterThan(3);
});
