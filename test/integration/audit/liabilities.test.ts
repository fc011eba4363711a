/** What is owed to whom, where names of customers look like the books' own. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parseHash32 } from "../../../chain/hex.js";
import {
  customerAccount,
  DEPOSIT_ADDRESSES,
  heldAccount,
  parseCustomerId,
  SUSPENSE,
} from "../../../ledger/journal/accounts.js";
import { postJournals } from "../../../ledger/journal/journal.js";
import { readLiabilities } from "../../../ledger/books/liabilities.js";
import { beginCursorBehind } from "../../../ledger/watch/watch-cursor.js";
import { openTestLedger, type TestLedger } from "../../helpers/services/ledger.js";

let ledger: TestLedger;

beforeAll(async () => {
  ledger = await openTestLedger();
});
afterAll(() => ledger?.drop());

describe("liabilities", () => {
  it("are kept apart for customers whose names are those of accounts", async () => {
    const names = ["suspense", "held:bob", "customer:bob", "bob"];
    await ledger.owner.query(`INSERT INTO customer (id) SELECT unnest($1::text[])`, [names]);
    const credit = (to: typeof SUSPENSE, amountUnits: bigint, place: number) => ({
      kind: "deposit.credit",
      idemKey: `credit ${place}`,
      effectiveHeight: 2,
      postings: [{ asset: "TOKEN", debit: DEPOSIT_ADDRESSES, credit: to, amountUnits }],
    });
    const holder = parseCustomerId("bob");
    await ledger.owner.transaction(async (tx) => {
      await postJournals(tx, [
        ...names.map((name, place) =>
          credit(customerAccount(parseCustomerId(name)), 10n ** BigInt(place), place),
        ),
        credit(SUSPENSE, 77_000n, 9),
        {
          kind: "withdrawal.hold",
          idemKey: "hold",
          effectiveHeight: null,
          postings: [
            {
              asset: "TOKEN",
              debit: customerAccount(holder),
              credit: heldAccount(holder),
              amountUnits: 400n,
            },
          ],
        },
      ]);
    });
    await ledger.owner.query(`UPDATE watch_cursor SET height = 5, block_hash = $1`, [
      `0x${"0".repeat(64)}`,
    ]);
    const { liabilities } = await readLiabilities(ledger.owner, { height: 2 });
    expect(liabilities).toEqual([
      { asset: "TOKEN", customerId: "bob", units: 1_000n },
      { asset: "TOKEN", customerId: "causeway:suspense", units: 77_000n },
      { asset: "TOKEN", customerId: "customer:bob", units: 100n },
      { asset: "TOKEN", customerId: "held:bob", units: 10n },
      { asset: "TOKEN", customerId: "suspense", units: 1n },
    ]);
  });

  it("are not told of a block before the books began, where nothing is known of them", async () => {
    const late = await openTestLedger();
    try {
      const hash = parseHash32(`0x${"1".repeat(64)}`);
      await beginCursorBehind(late.owner, { height: 9, hash, holdings: [] });
      await expect(readLiabilities(late.owner, { height: 8 })).rejects.toMatchObject({
        code: "HEIGHT_NOT_BOOKED",
        message: expect.stringContaining("began behind block 9"),
      });
      // What was there then is opening capital, and nobody was owed anything.
      expect((await readLiabilities(late.owner, { height: 9 })).liabilities).toEqual([]);
    } finally {
      await late.drop();
    }
  });
});
