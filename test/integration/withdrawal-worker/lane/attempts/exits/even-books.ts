/** What ways out leave in the books. */
import { expect } from "@jest/globals";
import { House, TOKEN, WALLET } from "../../../../../helpers/exchange/house.js";

/** What the wallet spent on the chain is what the books say that it spent. */
export async function expectEvenBooks(house: House): Promise<void> {
  const spent = 1_000n * TOKEN - (house.chain.balances.get(WALLET) ?? 0n);
  expect(100n * TOKEN - (await house.accountAtoken(`asset:wallet:${WALLET}`))).toBe(spent);
}
