/** What the chain showed of a lost payment stands, whoever writes to the tables. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { openTestLedger, type TestLedger } from "../../helpers/services/ledger.js";

let ledger: TestLedger;
const HASH = `0x${"ab".repeat(32)}`;

beforeAll(async () => {
  ledger = await openTestLedger();
  await ledger.owner.query(
    `INSERT INTO recovered_payment (tx_hash, wallet, nonce, height, block_hash, destination,
       amount_units, gas_used, gas_price_atoken, epoch, contract)
     VALUES ($1, $2, 3, 7, $1, $2, 1000, 21000, 1, 2, $3)`,
    [HASH, `0x${"11".repeat(20)}`, `0x${"22".repeat(20)}`],
  );
});
afterAll(() => ledger?.drop());

/** Refused by the rule of recovered payments, and by no other one. */
const byItsRule = {
  message: expect.stringContaining(`recovered payment ${HASH} is decided once`),
  details: { sqlState: "23001" },
};

function rows(): Promise<unknown[]> {
  return ledger.owner.query("SELECT * FROM recovered_payment");
}

describe("a recovered payment", () => {
  // Of another asset it would match requests that it never paid, and no longer the one that it did.
  it.each([
    ["contract", "NULL"],
    ["contract", `'0x${"33".repeat(20)}'`],
    ["amount_units", "1"],
    ["destination", `'0x${"33".repeat(20)}'`],
  ])("keeps its %s (%s is refused)", async (column, value) => {
    const before = await rows();
    const change = ledger.owner.query(`UPDATE recovered_payment SET ${column} = ${value}`);
    await expect(change).rejects.toMatchObject(byItsRule);
    expect(await rows()).toEqual(before);
  });

  it("keeps its first decision: a second is refused by the database", async () => {
    const decide = (decision: string) =>
      ledger.owner.query(`UPDATE recovered_payment SET decision = $1`, [decision]);
    await decide("written-off");
    await expect(decide("nothing-paid")).rejects.toMatchObject(byItsRule);
    expect(await rows()).toMatchObject([{ decision: "written-off" }]);
  });
});
