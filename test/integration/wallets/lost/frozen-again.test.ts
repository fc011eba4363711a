/** A freeze that is typed while another person's release looks at the chain: nobody has looked at it. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import type { WalletChain } from "../../../../ledger/withdrawals/release/outcome.js";
import { releaseWallet } from "../../../../ledger/withdrawals/release/release.js";
import { Desk, WALLET } from "../../recovery/desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

it.each([
  ["in words of its own", ["--reason", "the key was seen elsewhere"]],
  ["in the same words, as without any", []],
])("is not lifted by it, typed %s", async (_how, words) => {
  expect((await desk.causeway("withdrawals", "freeze")).code).toBe(0);
  const chain: WalletChain = {
    async headHeight() {
      await desk.causeway("withdrawals", "freeze", ...words);
      return desk.chain.head;
    },
    nonceAt: async () => 0n,
    queuedNonces: async () => [],
    receipts: async () => [],
    transactions: async () => [],
  };
  const context = { wallet: WALLET, chainOf: () => chain, paymentOf: async () => undefined };
  const { obstacles } = await releaseWallet({ database: desk.database, ...context }, {});
  expect(obstacles.map(({ obstacle }) => obstacle)).toEqual(["frozen-meanwhile"]);
  expect(await readFreeze(desk.database, WALLET)).toMatchObject({ frozen: true });
  expect((await desk.causeway("withdrawals", "release")).code).toBe(0);
});
