/** What a comparison of books and chain holds in memory, where there are many addresses and tokens. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { readBooks } from "../../../ledger/books/reconcile-books.js";
import { ADJUSTMENT, DEPOSIT_ADDRESSES } from "../../../ledger/journal/accounts.js";
import { postJournal } from "../../../ledger/journal/journal.js";
import type { Sql, SqlDatabase } from "../../../runtime/sql/sql.js";
import { openTestLedger, type TestLedger } from "../../helpers/services/ledger.js";

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
