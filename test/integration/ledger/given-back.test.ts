/** A payment of a token whose contract gives something back in the same transaction, before it is settled. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256Hex } from "../../../chain/hashes.js";
import { reconcile, type ReconcileChain } from "../../../ledger/books/reconcile.js";
import { OPENING_CAPITAL, SUSPENSE, walletAccount } from "../../../ledger/journal/accounts.js";
import { postJournals } from "../../../ledger/journal/journal.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import {
  openTestLedger,
  registerTestWallets,
  type TestLedger,
} from "../../helpers/services/ledger.js";
import { storeSigned } from "../../helpers/services/signed-payment.js";

const WALLET = testAddress(0x407);
const PAYEE = testAddress(0x57a);
const GOLD = testAddress(0x601d);
const hashOf = (text: string) => keccak256Hex(Buffer.from(text));
const PAYMENT = hashOf("payment");

let ledger: TestLedger;

beforeEach(async () => {
  ledger = await openTestLedger();
  await registerTestWallets(ledger.database, WALLET);
});
afterEach(() => ledger.drop());

it("took what it sent away: what it gave back is booked by the watcher", async () => {
  const { owner } = ledger;
  await owner.query(`INSERT INTO customer (id) VALUES ('alice')`);
  await owner.query(
    `INSERT INTO asset (symbol, contract, decimals, from_height) VALUES ('GOLD', $1, 6, 0)`,
    [GOLD],
  );
  await owner.query(
    `INSERT INTO token_state (asset, opened, paused, reason, changed_by)
     VALUES ('GOLD', true, false, '', 'test')`,
  );
  const payment = { id: "w1", asset: "GOLD", wallet: WALLET, destination: PAYEE, nonce: 0 };
  await storeSigned(owner, { ...payment, amountUnits: 10n, hash: PAYMENT });
  await owner.transaction((tx) =>
    postJournals(tx, [
      {
        kind: "wallet.opening",
        idemKey: "opening",
        effectiveHeight: 1,
        postings: [
          {
            asset: "GOLD",
            debit: walletAccount(WALLET),
            credit: OPENING_CAPITAL,
            amountUnits: 1_000n,
          },
        ],
      },
      {
        kind: "wallet.inflow",
        idemKey: "wallet-inflow:5-0-1",
        effectiveHeight: 5,
        memo: PAYMENT,
        postings: [
          { asset: "GOLD", debit: walletAccount(WALLET), credit: SUSPENSE, amountUnits: 3n },
        ],
      },
    ]),
  );
  await owner.query(`UPDATE watch_cursor SET height = 5, block_hash = $1`, [hashOf("block 5")]);
  const transfers = [
    { contract: GOLD, from: WALLET, to: PAYEE, units: 10n },
    { contract: GOLD, from: PAYEE, to: WALLET, units: 3n },
    { contract: GOLD, from: WALLET, to: WALLET, units: 7n },
    { contract: PAYEE, from: WALLET, to: PAYEE, units: 99n },
  ];
  const cost = { height: 5, isSuccess: true, feeAtoken: 0n, transfers };
  const nothing = async function* () {};
  const chain: ReconcileChain = {
    blockHash: async () => hashOf("block 5"),
    balances: async (queries) => queries.map(() => 0n),
    tokenBalances: async (_, queries) => queries.map(() => 993n),
    minedCosts: async (hashes) => hashes.map(() => cost),
    movements: nothing,
    tokenMovements: nothing,
  };
  const [gold] = (await reconcile(owner, chain)).tokens;
  expect(gold?.lines[0]).toMatchObject({
    ledgerUnits: 1_003n,
    inFlight: [{ amountUnits: -10n }],
    chainUnits: 993n,
    differenceUnits: 0n,
    breaks: [],
  });
});
