/** Why a transaction was credited, where it paid more addresses than one answer lists. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { parseHash32 } from "../../../chain/hex.js";
import { explainTransaction } from "../../../deposit-watcher/api/explanation.js";
import { recordSightings, type SightingReason } from "../../../ledger/assets/token-sightings.js";
import { insertDeposits } from "../../../ledger/blocks/new-deposits.js";
import type { DepositStatus } from "../../../ledger/deposits/deposit-queries.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { openTestLedger, type TestLedger } from "../../helpers/services/ledger.js";
import { registerAddress } from "../../helpers/services/watcher.js";

const ALICE = parseCustomerId("alice");
const HASH = parseHash32(`0x${"ab".repeat(32)}`);
const address = parseAddress(`0x${"01".repeat(20)}`);

let ledger: TestLedger;

beforeEach(async () => {
  ledger = await openTestLedger();
  await registerAddress(ledger.database, ALICE, { deriveAddress: () => address, issuedBelow: 0 });
});
afterEach(() => ledger.drop());

/** One transaction with a deposit of each state, in the order of its operations; the last one is of an asset. */
async function book(states: readonly DepositStatus[], lastAsset = "TOKEN"): Promise<void> {
  const rows = states.map((status, opIndex) => ({
    status,
    deposit: {
      address,
      customerId: ALICE,
      asset: opIndex === states.length - 1 ? lastAsset : "TOKEN",
      amountUnits: 1n,
      height: 5,
      blockHash: HASH,
      txHash: HASH,
      txIndex: 0,
      opIndex,
      creditable: status !== "suspense",
    },
  }));
  await ledger.database.transaction((tx) => insertDeposits(tx, rows));
}

/** What the same transaction brought, or claimed to bring, and what is not credited. */
async function sight(reason: SightingReason): Promise<void> {
  const place = { height: 5, blockHash: HASH, txHash: HASH, txIndex: 0, opIndex: 1_000_000_000 };
  const contract = parseAddress(`0x${"02".repeat(20)}`);
  const claim = { contract, standard: "erc20", address, sender: undefined, claimed: 7n } as const;
  const sightings = [{ ...place, ...claim, reason }];
  await ledger.database.transaction((tx) => recordSightings(tx, sightings, 0));
}

/** The ledger knows the answer: nobody else is asked. */
function explain() {
  const nobody = () => Promise.reject(new Error("the ledger knows the answer"));
  const node = {
    transactionStatus: nobody,
    getTransactionReceipt: nobody,
    getBlockHeader: nobody,
    blockJournal: nobody,
  };
  const watched = {
    customerOf: () => undefined,
    assetOf: () => undefined,
    walletFrom: () => undefined,
  };
  const parts = { database: ledger.database, node, source: { block: nobody }, watched };
  return explainTransaction(parts, HASH, new AbortController());
}

it.each([
  ["suspense", "SUSPENSE"],
  ["held", "HELD"],
  ["detected", "CONFIRMING"],
] as const)(
  "a deposit that is %s is told behind a hundred that are credited",
  async (state, code) => {
    await book([...Array.from({ length: 100 }, () => "credited" as const), state]);
    const found = await explain();
    expect(found.code).toBe(code);
    expect(found.deposits).toHaveLength(100);
    expect(found.deposits.at(-1)).toMatchObject({ opIndex: 100, status: state });
  },
);

it("a token's deposit that is held is explained by its own token, whatever else came with it", async () => {
  const { owner } = ledger;
  await owner.query(
    `INSERT INTO asset (symbol, contract, decimals, from_height) VALUES ('GOLD', $1, 6, 0)`,
    [`0x${"02".repeat(20)}`],
  );
  await owner.query(
    `INSERT INTO token_state (asset, paused, reason, changed_by)
     VALUES ('GOLD', true, 'it runs other code', 'watcher')`,
  );
  await book(["credited", "held"], "GOLD");
  const { code, message } = await explain();
  expect([code, message]).toEqual([
    "HELD",
    "The deposit is held: GOLD stands still: it runs other code.",
  ]);
});

it.each([
  ["UNKNOWN_TOKEN", "which is not listed here: it is recorded, not credited."],
  ["SHORTFALL", "The token claims 7 units that the balance of the address did not rise by."],
] as const)("a credited deposit does not hide what came beside it: %s", async (reason, words) => {
  await book(["credited"]);
  expect((await explain()).message).toBe("Its deposits are credited.");
  await sight(reason);
  const { code, message } = await explain();
  expect(code).toBe("CREDITED");
  expect(message).toMatch(/^Its deposits are credited\. Beside that: /);
  expect(message.endsWith(words)).toBe(true);
});
