/** A ledger from the time of one hot wallet: its books go over to an account for each wallet, once. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../chain/hex.js";
import { type Address, parseAddress } from "../../../chain/address.js";
import { bisectBreaks } from "../../../ledger/books/break-bisection.js";
import {
  customerAccount,
  DEPOSIT_ADDRESSES,
  heldAccount,
  HOT_WALLET,
  NETWORK_FEE,
  OPENING_CAPITAL,
  parseCustomerId,
  RECOVERED_PAYMENTS,
  walletAccount,
} from "../../../ledger/journal/accounts.js";
import { type JournalEntry, postJournals } from "../../../ledger/journal/journal.js";
import { readBooks } from "../../../ledger/books/reconcile-books.js";
import {
  LEDGER_FORMAT_VERSION,
  LEDGER_MIGRATIONS,
  type LedgerDatabase,
  openLedger,
} from "../../../ledger/database.js";
import { Wallets1760000000013 } from "../../../ledger/migrations/0013-wallets.js";
import { listWallets } from "../../../ledger/wallets/wallet.js";
import { openDatabase } from "../../../runtime/sql/sql.js";
import { silentLog, TEST_IDENTITY } from "../../helpers/services/ledger.js";
import { createTestDatabase } from "../../helpers/services/postgres.js";

const FIRST = parseAddress(`0x${"1".repeat(40)}`);
/** Whose keystore took the first one's place at some time. */
const SECOND = parseAddress(`0x${"2".repeat(40)}`);
const FEE = 21n;
const asset = "TOKEN";
const { signal } = new AbortController();
const alice = parseCustomerId("alice");

let url: string;
let drop: () => Promise<void>;
let ledger: LedgerDatabase;

const hashOf = (digit: string): Hash32 => `0x${digit.repeat(64)}` as Hash32;

/** What a withdrawal left that was paid with a nonce of a wallet. */
const paid = (id: string, amountUnits: bigint, effectiveHeight: number): JournalEntry => ({
  kind: "withdrawal.settle",
  idemKey: `withdrawal:${id}:end`,
  effectiveHeight,
  postings: [
    { asset, debit: heldAccount(alice), credit: HOT_WALLET, amountUnits },
    { asset, debit: NETWORK_FEE, credit: HOT_WALLET, amountUnits: FEE },
  ],
});

beforeAll(async () => {
  ({ url, drop } = await createTestDatabase());
  const former = await openDatabase({
    url,
    log: silentLog,
    signal,
    applicationName: "test",
    migrations: LEDGER_MIGRATIONS.slice(0, LEDGER_MIGRATIONS.indexOf(Wallets1760000000013)),
    poolSize: 2,
  });
  await former.query(`INSERT INTO meta VALUES ('format_version', '2')`);
  await former.query(`INSERT INTO customer (id) VALUES ('alice')`);
  const slots: readonly (readonly [string, Address, number])[] = [
    ["wd_1", FIRST, 0],
    ["wd_2", SECOND, 0],
  ];
  for (const [id, wallet, nonce] of slots) {
    await former.query(`INSERT INTO hot_wallet (wallet, next_nonce) VALUES ($1, 9)`, [wallet]);
    await former.query(
      `INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset, wallet,
         destination, destination_text, amount_units, status)
       VALUES ($1, $1, '', 'alice', 'TOKEN', $2, $3, $3, 30, 'settled')`,
      [id, wallet, `0x${"9".repeat(40)}`],
    );
    await former.query(
      `INSERT INTO nonce_slot (wallet, nonce, withdrawal_id, gas_limit, gas_price_atoken,
         reserved_atoken, outcome, paid_proof, mined_hash, block_number, block_hash, gas_used,
         effective_gas_price_atoken)
       VALUES ($1, $2, $3, 21, 1, 0, 'paid', 'receipt', $4, 5, $4, 21, 1)`,
      [wallet, nonce, id, hashOf(id.slice(-1))],
    );
  }
  await former.query(
    `INSERT INTO recovered_payment (tx_hash, wallet, nonce, height, block_hash, destination,
       amount_units, gas_used, gas_price_atoken, epoch)
     VALUES ($1, $2, 1, 6, $1, $3, 11, 21, 1, 1)`,
    [hashOf("a"), SECOND, `0x${"9".repeat(40)}`],
  );
  const move = (idemKey: string, height: number | null, postings: JournalEntry["postings"]) => ({
    kind: "test",
    idemKey,
    effectiveHeight: height,
    postings,
  });
  await former.transaction((tx) =>
    postJournals(tx, [
      move("opening", 0, [
        { asset, debit: HOT_WALLET, credit: OPENING_CAPITAL, amountUnits: 1_000n },
      ]),
      move("deposit", 1, [
        { asset, debit: DEPOSIT_ADDRESSES, credit: customerAccount(alice), amountUnits: 60n },
      ]),
      move("hold", null, [
        { asset, debit: customerAccount(alice), credit: heldAccount(alice), amountUnits: 60n },
      ]),
    ]),
  );
  await former.transaction((tx) =>
    postJournals(tx, [
      paid("wd_1", 30n, 5),
      paid("wd_2", 30n, 5),
      move(`recovered-payment:${hashOf("a")}`, 6, [
        { asset, debit: RECOVERED_PAYMENTS, credit: HOT_WALLET, amountUnits: 11n },
      ]),
      move(`outflow:${hashOf("b")}:${SECOND}`, 7, [
        { asset, debit: OPENING_CAPITAL, credit: HOT_WALLET, amountUnits: 4n },
      ]),
    ]),
  );
  await former.query(`UPDATE watch_cursor SET height = 10, block_hash = $1`, [hashOf("c")]);
  await former.close();
  ledger = await openLedger({ url, log: silentLog, signal, identity: TEST_IDENTITY });
});

afterAll(async () => {
  await ledger?.close();
  await drop?.();
});

/** Debits less credits. */
async function balanceOf(account: string): Promise<bigint> {
  const [row] = await ledger.query<{ sum: string }>(
    `SELECT coalesce(sum(CASE WHEN debit = $1 THEN amount_units ELSE -amount_units END), 0)::text
              AS sum
       FROM posting WHERE debit = $1 OR credit = $1`,
    [account],
  );
  return BigInt(row?.sum ?? "0");
}

describe("the account of the only hot wallet", () => {
  it("goes over to the wallets that paid, what nobody can tell to the first one", async () => {
    expect(await listWallets(ledger)).toMatchObject([
      { address: FIRST, status: "active", fromHeight: 0, pastBooked: true },
      { address: SECOND, status: "active", fromHeight: 0, pastBooked: true },
    ]);
    expect(await balanceOf(HOT_WALLET)).toBe(0n);
    expect(await balanceOf(walletAccount(FIRST))).toBe(1_000n - 30n - FEE);
    expect(await balanceOf(walletAccount(SECOND))).toBe(-30n - FEE - 11n - 4n);
    const books = await readBooks(ledger);
    expect(books.native.internalBreaks).toEqual([]);
    expect(books.native.wallets.map(({ balanceUnits }) => balanceUnits)).toEqual([
      1_000n - 30n - FEE,
      -30n - FEE - 11n - 4n,
    ]);
  });

  it("goes over once, however often the ledger is opened", async () => {
    const again = await openLedger({ url, log: silentLog, signal, identity: TEST_IDENTITY });
    await again.query(`SELECT move_former_wallet_account()`);
    await again.close();
    const rows = await ledger.query(`SELECT 1 FROM journal_entry WHERE kind = 'wallet.account'`);
    expect(rows).toHaveLength(1);
    const [format] = await ledger.query(`SELECT value FROM meta WHERE key = 'format_version'`);
    expect(format).toEqual({ value: String(LEDGER_FORMAT_VERSION) });
  });

  it("counts when a break of the first wallet is followed", async () => {
    // What the former account says of block 5 is true; in block 9 seven atoken are gone.
    const chainAt = (height: number) => {
      const others = height >= 5 ? 30n + FEE : 0n;
      const ofAll = height >= 6 ? 11n : 0n;
      const outflow = height >= 7 ? 4n : 0n;
      const paidThere = height >= 5 ? 30n + FEE : 0n;
      return 1_000n - paidThere - others - ofAll - outflow - (height >= 9 ? 7n : 0n);
    };
    const amounts = { ledgerUnits: 0n, chainUnits: -7n, differenceUnits: -7n };
    const found = { address: FIRST, causes: [], moreCauses: 0, ...amounts };
    const line = { account: walletAccount(FIRST), inFlight: [], moreBreaks: 0, ...amounts };
    const places = await bisectBreaks(
      ledger,
      {
        balances: async (asked) => asked.map(({ height }) => chainAt(height)),
        tokenBalances: async () => [],
      },
      { height: 10, lines: [{ ...line, breaks: [found] }] },
    );
    expect(places).toMatchObject([{ asset, found: { address: FIRST }, height: 9 }]);
  });
});
