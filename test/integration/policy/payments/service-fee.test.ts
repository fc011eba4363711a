/** The fee for a withdrawal: earned by a payment, and given back where nothing is paid. */
import { describe, expect, it } from "@jest/globals";
import { readBooks } from "../../../../ledger/books/reconcile-books.js";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { freshAddress, House, houseForEachTest, TOKEN } from "../../../helpers/exchange/house.js";
import { policyOf } from "../terms.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const statusOf = async ({ id }: Pick<Withdrawal, "id">) => (await house.read(id)).status;

const internalBreaks = async () => {
  const books = await readBooks(house.database);
  return books.native.internalBreaks;
};

describe("the service fee", () => {
  it("is earned by a payment, and given back where nothing is paid", async () => {
    house.files.policy = policyOf({ feeUnits: TOKEN });
    const lane = house.lane();
    const paid = await house.accept();
    expect(await internalBreaks()).toEqual([]);
    await house.pass(lane);
    expect(await statusOf(paid)).toBe("settled");
    expect(await internalBreaks()).toEqual([]);
    expect(await house.accountAtoken("revenue:withdrawal_fees")).toBe(-TOKEN);
    expect(await house.balance("alice")).toEqual({ available: 98n * TOKEN, held: 0n });
    const [refused, failing] = [freshAddress(), freshAddress()];
    house.chain.reverting.add(refused);
    house.chain.revertingOnChain.add(failing);
    const before = await house.accept({ destination: refused, destinationText: refused });
    const onChain = await house.accept({ destination: failing, destinationText: failing });
    await house.pass(lane);
    expect([await statusOf(before), await statusOf(onChain)]).toEqual(["failed", "failed"]);
    expect(await house.balance("alice")).toEqual({ available: 98n * TOKEN, held: 0n });
    expect(await house.accountAtoken("revenue:withdrawal_fees")).toBe(-TOKEN);
  });
});
