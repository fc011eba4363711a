/** What a comparison of books and chain holds in memory, where there are many addresses and tokens. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { openingEntry } from "../../../../ledger/assets/token-opening.js";
import { reconcile, type ReconcileChain } from "../../../../ledger/books/reconcile.js";
import { readBooks } from "../../../../ledger/books/reconcile-books.js";
import { ADJUSTMENT, DEPOSIT_ADDRESSES } from "../../../../ledger/journal/accounts.js";
import { postJournal } from "../../../../ledger/journal/journal.js";
import type { Sql, SqlDatabase } from "../../../../runtime/sql/sql.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { openTestLedger, type TestLedger } from "../../../helpers/services/ledger.js";

const ADDRESSES = 300;
const TOKENS = 4;

let ledger: TestLedger;

beforeEach(async () => {
  ledger = await openTestLedger();
  const { owner } = ledger;
  await owner.query(`INSERT INTO customer (id) VALUES ('alice')`);
  await owner.query(
    `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
     SELECT n, '0x' || lpad(to_hex(n), 40, '0'), 'alice', 0, true
       FROM generate_series(0, $1::integer - 1) AS n`,
    [ADDRESSES],
  );
  await owner.query(
    `INSERT INTO asset (symbol, contract, decimals, from_height)
     SELECT 'T' || n, '0x' || lpad(n::text, 40, 'c'), 6, 0 FROM generate_series(1, $1::integer) AS n`,
    [TOKENS],
  );
  await owner.query(
    `INSERT INTO token_state (asset, opened, paused, reason, changed_by)
     SELECT 'T' || n, true, false, '', 'test' FROM generate_series(1, $1::integer) AS n`,
    [TOKENS],
  );
});
afterEach(() => ledger.drop());

it("reads addresses once, and of each asset those alone that have some", async () => {
  await ledger.owner.query(
    `INSERT INTO deposit (id, address, customer_id, asset, amount_units, status, height, block_hash,
                          tx_hash, tx_index, op_index)
     SELECT n || '-0-0', '0x' || lpad(to_hex(n), 40, '0'), 'alice', 'T1', 10 + n, 'suspense', n,
            '0x' || lpad('b', 64, 'b'), '0x' || lpad('c', 64, 'c'), 0, 0
       FROM generate_series(1, 2) AS n`,
  );
  await ledger.owner.transaction((tx) =>
    postJournal(tx, {
      kind: "ledger.adjustment",
      idemKey: "adjustment:test",
      effectiveHeight: 0,
      memo: `0x${"d".repeat(64)}`,
      postings: [{ asset: "T2", debit: DEPOSIT_ADDRESSES, credit: ADJUSTMENT, amountUnits: 5n }],
    }),
  );
  let rows = 0;
  const counted: SqlDatabase = Object.assign(Object.create(ledger.owner) as SqlDatabase, {
    transaction: <T>(work: (tx: Sql) => Promise<T>) =>
      ledger.owner.transaction((tx) =>
        work({
          query: async <Row>(text: string, parameters?: readonly unknown[]) => {
            const found = await tx.query<Row>(text, parameters);
            rows += found.length;
            return found;
          },
        }),
      ),
  });
  const books = await readBooks(counted);
  expect(rows).toBeLessThan(ADDRESSES + 50);
  expect(books.addresses.length).toBe(ADDRESSES);
  expect(books.tokens.length).toBe(TOKENS);
  expect([books.native, ...books.tokens].map(({ unitsOf }) => [...unitsOf.values()])).toEqual([
    [],
    [11n, 12n],
    ...Array.from({ length: TOKENS - 1 }, () => []),
  ]);
});

it("counts once what an address held before its first block, where that is the token's, too", async () => {
  const { owner } = ledger;
  // The token is opened with the first address; the second one came after that, and nothing of it is booked.
  const [opened, waiting, contract] = [testAddress(0x5a1), testAddress(0x5a2), testAddress(0x601d)];
  for (const [n, address] of [opened, waiting].entries()) {
    await owner.query(
      `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
       VALUES ($1, $2, 'alice', 5, false)`,
      [ADDRESSES + n, address],
    );
  }
  await owner.query(
    `INSERT INTO asset (symbol, contract, decimals, from_height) VALUES ('GOLD', $1, 6, 5)`,
    [contract],
  );
  await owner.query(
    `INSERT INTO token_state (asset, opened, paused, reason, changed_by)
     VALUES ('GOLD', true, false, '', 'test')`,
  );
  const held = new Map([
    [opened, 10n],
    [waiting, 20n],
  ]);
  const opening = { address: opened, fromHeight: 5 };
  const balance = { asset: "GOLD", amountUnits: 10n };
  await owner.transaction((tx) => postJournal(tx, openingEntry(opening, balance, 0)));
  const blockHash = keccak256Hex(Buffer.from("block 6"));
  await owner.query(`UPDATE watch_cursor SET height = 6, block_hash = $1`, [blockHash]);
  const nothing = async function* () {};
  const chain: ReconcileChain = {
    blockHash: async () => blockHash,
    balances: async (queries) => queries.map(() => 0n),
    tokenBalances: async (token, queries) =>
      queries.map(({ address }) => (token === contract ? held.get(address) : undefined)),
    minedCosts: async () => [],
    movements: nothing,
    tokenMovements: nothing,
  };
  const gold = (await reconcile(owner, chain)).tokens.find(({ asset }) => asset === "GOLD");
  expect(gold?.lines).toMatchObject([
    { ledgerUnits: 10n, inFlight: [{ amountUnits: 20n }], differenceUnits: 0n, breaks: [] },
  ]);
});
