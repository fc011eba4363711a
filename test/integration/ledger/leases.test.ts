/** Leases by the database's clock, which is a host's: it goes back where that is set, or a standby is late. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { acquireRow, isRowOfOther, type LeasedRow } from "../../../ledger/lease.js";
import { holdLease, releaseLease } from "../../../ledger/task-lease.js";
import {
  acquireLease,
  createHotWallet,
  showBalance,
} from "../../../ledger/wallets/wallet-lease.js";
import { readPayers, readWalletOverview } from "../../../ledger/withdrawals/wallet-overview.js";
import {
  openTestLedger,
  registerTestWallets,
  type TestLedger,
} from "../../helpers/services/ledger.js";

const WALLET = parseAddress(`0x${"a1".repeat(20)}`);
const ROWS: readonly LeasedRow[] = [
  { table: "hot_wallet", key: WALLET },
  { table: "watch_lease", key: "blocks" },
];
/** What the settings allow at most. */
const LEASE_MS = 60_000;
const TASK = { task: "webhooks", leaseMs: 15_000 } as const;

let ledger: TestLedger;

beforeEach(async () => {
  ledger = await openTestLedger();
  await registerTestWallets(ledger.database, WALLET);
  await createHotWallet(ledger.database, { wallet: WALLET, firstNonce: 0n });
});
afterEach(() => ledger.drop());

const take = (row: LeasedRow, owner: string, leaseMs = LEASE_MS) =>
  acquireRow(ledger.database, row, { owner, leaseMs });

/** As the times of rows are seen once the database's clock has gone back. */
const clockGoesBack = (table: string, column: string, time: string) =>
  ledger.owner.query(`UPDATE ${table} SET ${column} = ${column} + $1::interval`, [time]);

it.each(ROWS)(
  "of $table keeps others out for as long as it can have been given for",
  async (row) => {
    expect(await take(row, "one")).toBe(1n);
    // Whoever gives shorter ones waits for it, too.
    expect(await take(row, "two", 1_000)).toBeUndefined();
    expect(await isRowOfOther(ledger.database, row, "two")).toBe(true);
    await clockGoesBack(row.table, "lease_expires_at", "1 hour");
    expect(await isRowOfOther(ledger.database, row, "two")).toBe(false);
    expect(await take(row, "two")).toBe(2n);
    expect(await take(row, "one")).toBeUndefined();
  },
);

it("of a wallet makes no payer of it that a clock has left behind", async () => {
  const { database } = ledger;
  const lease = await acquireLease(database, { wallet: WALLET, owner: "one", leaseMs: LEASE_MS });
  if (lease === undefined) throw new Error("nobody else wants it");
  await showBalance(database, lease, { balanceAtoken: 1n, height: 1, nonce: 0n });
  expect(await readPayers(database)).toMatchObject([{ wallet: WALLET }]);
  expect(await readWalletOverview(database)).toMatchObject([{ leaseHolder: "one" }]);
  await clockGoesBack("hot_wallet", "lease_expires_at", "1 hour");
  expect(await readPayers(database)).toEqual([]);
  expect(await readWalletOverview(database)).toMatchObject([{ leaseHolder: undefined }]);
});

it("of background work keeps others out for as long as it can have been given for", async () => {
  const { database } = ledger;
  expect(await holdLease(database, { ...TASK, owner: "one" })).toBe(true);
  expect(await holdLease(database, { ...TASK, owner: "two" })).toBe(false);
  await clockGoesBack("task_lease", "expires_at", "1 hour");
  expect(await holdLease(database, { ...TASK, owner: "two" })).toBe(true);
  expect(await holdLease(database, { ...TASK, owner: "one" })).toBe(false);
});

it("of background work that was given back is free whatever the clock says then", async () => {
  const { database } = ledger;
  await holdLease(database, { ...TASK, owner: "one" });
  await releaseLease(database, { ...TASK, owner: "one" });
  await clockGoesBack("task_lease", "expires_at", "10 seconds");
  expect(await holdLease(database, { ...TASK, owner: "two" })).toBe(true);
});
