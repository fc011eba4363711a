/** A late node that shows fewer foreign transactions than its nonces count: the rest may be payments. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { parseHash32 } from "../../../../chain/hex.js";
import { readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import { readHotWallet } from "../../../../ledger/wallets/wallet-lease.js";
import type { WalletTransaction } from "../../../../ledger/withdrawals/operator-decisions.js";
import type { WalletChain } from "../../../../ledger/withdrawals/release/outcome.js";
import { releaseWallet } from "../../../../ledger/withdrawals/release/release.js";
import { Desk, destination, TOKEN, WALLET } from "../../recovery/desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  expect((await desk.causeway("withdrawals", "freeze")).code).toBe(0);
});
afterEach(() => desk.close());

const FIRST: WalletTransaction = {
  hash: parseHash32(`0x${"a".repeat(64)}`),
  height: 1,
  nonce: 0n,
  to: destination(1),
  isCosmos: false,
  isSuccess: true,
  valueAtoken: TOKEN,
  transfer: undefined,
  paid: [],
  taken: [],
  gasUsed: 21_000n,
  gasPriceAtoken: 1n,
};

it.each([
  ["none of them", []],
  ["one of them", [FIRST]],
])("is not believed: no nonce is skipped where it shows %s", async (_what, shown) => {
  const chain: WalletChain = {
    headHeight: async () => desk.chain.head,
    nonceAt: async () => 2n,
    queuedNonces: async () => [],
    receipts: async () => [],
    transactions: async () => shown,
  };
  const { database } = desk;
  const context = {
    database,
    wallet: WALLET,
    chainOf: () => chain,
    paymentOf: async () => undefined,
  };
  const hashes = shown.map(({ hash }) => hash);
  const acknowledgement = { hashes, by: "ann", reason: "looked" };
  await expect(releaseWallet(context, { acknowledgement })).rejects.toMatchObject({
    code: "NO_WALLET_TRANSACTION",
  });
  expect((await readHotWallet(database, WALLET))?.nextNonce).toBe(0n);
  expect(await readFreeze(database, WALLET)).toMatchObject({ frozen: true });
});
