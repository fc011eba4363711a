/** One transaction that takes of two hot wallets: who asked for one payment asked for no other. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { bookWalletFlows } from "../../../../ledger/blocks/wallet-flows.js";
import { NATIVE_ASSET } from "../../../../ledger/journal/accounts.js";
import { readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import {
  openTestLedger,
  registerTestWallets,
  type TestLedger,
} from "../../../helpers/services/ledger.js";
import { storeSigned } from "../../../helpers/services/signed-payment.js";

const PAYER = testAddress(0x407);
const OTHER = testAddress(0x408);
const PAYMENT = keccak256Hex(Buffer.from("a payment of one wallet"));

let ledger: TestLedger;

beforeEach(async () => {
  ledger = await openTestLedger();
  await registerTestWallets(ledger.database, PAYER, OTHER);
  const { owner } = ledger;
  await owner.query(
    `INSERT INTO asset (symbol, contract, decimals, from_height) VALUES ('GOLD', $1, 6, 0)`,
    [testAddress(0x601d)],
  );
  await owner.query(`INSERT INTO customer (id) VALUES ('alice')`);
  await storeSigned(owner, {
    id: "w1",
    asset: NATIVE_ASSET,
    wallet: PAYER,
    destination: testAddress(0x57a),
    amountUnits: 1_000n,
    nonce: 0,
    hash: PAYMENT,
  });
});
afterEach(() => ledger.drop());

it("is explained for the wallet that paid, and for no other", async () => {
  const place = { role: "hot-wallet" as const, txHash: PAYMENT, height: 7 };
  const paid = {
    ...place,
    asset: NATIVE_ASSET,
    wallet: PAYER,
    amountUnits: 1_000n,
    feeAtoken: 21n,
  };
  const lost = { ...place, asset: "GOLD", wallet: OTHER, amountUnits: 5n, feeAtoken: 0n };
  const told = { paidBy: () => [], isOfOtherCode: () => false };
  const flows = { walletInflows: [], outflows: [paid, lost], ...told, rewinds: 0 };
  const foreign = await ledger.owner.transaction((tx) => bookWalletFlows(tx, flows));
  expect(foreign).toEqual([lost]);
  const rows = await ledger.owner.query(
    `SELECT wallet, tx_hash, asset, amount_units::text AS amount FROM foreign_outflow`,
  );
  expect(rows).toEqual([{ wallet: OTHER, tx_hash: PAYMENT, asset: "GOLD", amount: "5" }]);
  expect((await readFreeze(ledger.owner, OTHER)).frozen).toBe(true);
  expect((await readFreeze(ledger.owner, PAYER)).frozen).toBe(false);
});
