import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  customerAccount,
  DEPOSIT_ADDRESSES,
  heldAccount,
  HOT_WALLET,
  NATIVE_ASSET,
  parseCustomerId,
  SUSPENSE,
} from "../../../ledger/journal/accounts.js";
import { customerBalances } from "../../../ledger/deposits/deposit-queries.js";
import { type JournalEntry, postJournal, postJournals } from "../../../ledger/journal/journal.js";
import { openTestLedger, type TestLedger } from "../../helpers/services/ledger.js";

const MAX = 2n ** 256n - 1n;

let ledger: TestLedger;
beforeAll(async () => {
  ledger = await openTestLedger();
});
afterAll(() => ledger.drop());

async function customer(name: string) {
  const id = parseCustomerId(name);
  await ledger.database.query(`INSERT INTO customer (id) VALUES ($1) ON CONFLICT DO NOTHING`, [id]);
  return id;
}

function post(entry: JournalEntry) {
  return ledger.database.transaction((tx) => postJournal(tx, entry));
}

function credit(idemKey: string, name: string, amountAtoken: bigint): JournalEntry {
  return {
    kind: "test",
    idemKey,
    effectiveHeight: 1,
    postings: [
      {
        asset: NATIVE_ASSET,
        debit: DEPOSIT_ADDRESSES,
        credit: customerAccount(parseCustomerId(name)),
        amountUnits: amountAtoken,
      },
    ],
  };
}

function hold(idemKey: string, name: string, amountAtoken: bigint): JournalEntry {
  const id = parseCustomerId(name);
  return {
    kind: "hold",
    idemKey,
    effectiveHeight: null,
    postings: [
      {
        asset: NATIVE_ASSET,
        debit: customerAccount(id),
        credit: heldAccount(id),
        amountUnits: amountAtoken,
      },
    ],
  };
}

describe("a balance", () => {
  it("may be more than any payment can be: a token's contract says what it likes", async () => {
    await customer("rich");
    // What one address has of a token is bounded; a customer has many, and holds go on top.
    for (let n = 0; n < 12; n += 1) await post(credit(`rich ${n}`, "rich", MAX));
    await post(hold("rich hold", "rich", MAX));
    const balances = await customerBalances(ledger.database, parseCustomerId("rich"));
    expect(balances).toMatchObject([{ availableUnits: 11n * MAX, heldUnits: MAX }]);
  });
});

describe("the journal", () => {
  it("moves balances with postings and keeps every atoken of the largest amounts", async () => {
    const id = await customer("big:one.x_-");
    await post(credit("big-1", id, MAX));
    await post(hold("big-2", id, MAX - 1n));
    expect(await customerBalances(ledger.database, id)).toEqual([
      { asset: "TOKEN", availableUnits: 1n, heldUnits: MAX - 1n, pendingUnits: 0n },
    ]);
  });

  it("posts a key once and refuses the same key with other content", async () => {
    const id = await customer("once");
    expect(await post(credit("once-1", id, 5n))).toEqual({ posted: true });
    expect(await post(credit("once-1", id, 5n))).toEqual({ posted: false });
    await expect(post(credit("once-1", id, 6n))).rejects.toMatchObject({
      code: "JOURNAL_CONFLICT",
    });
    await expect(post({ ...credit("once-1", id, 5n), effectiveHeight: 2 })).rejects.toMatchObject({
      code: "JOURNAL_CONFLICT",
    });
    const balances = await customerBalances(ledger.database, id);
    expect(balances?.[0]?.availableUnits).toBe(5n);
  });

  it("posts only the new ones of many entries, each with all its legs", async () => {
    const id = await customer("many");
    const fee = {
      ...credit("many-3", id, 3n),
      postings: [
        ...credit("", id, 3n).postings,
        { asset: NATIVE_ASSET, debit: HOT_WALLET, credit: SUSPENSE, amountUnits: 7n },
      ],
    };
    await post(credit("many-1", id, 1n));
    const posted = await ledger.database.transaction((tx) =>
      postJournals(tx, [credit("many-2", id, 2n), fee, credit("many-1", id, 1n)]),
    );
    expect([...posted].toSorted()).toEqual(["many-2", "many-3"]);
    expect((await customerBalances(ledger.database, id))?.[0]?.availableUnits).toBe(6n);
    const [legs] = await ledger.database.query<{ count: number }>(
      `SELECT count(*)::integer AS count FROM posting JOIN journal_entry e ON e.id = journal_id
        WHERE idem_key = 'many-3'`,
    );
    expect(legs?.count).toBe(2);
  });

  it("refuses what would make a customer negative, and leaves no trace of it", async () => {
    const id = await customer("poor");
    await post(credit("poor-1", id, 10n));
    await expect(post(hold("poor-2", id, 11n))).rejects.toMatchObject({
      code: "INSUFFICIENT_BALANCE",
    });
    const release = hold("poor-3", id, 1n);
    const [leg] = release.postings;
    await expect(
      post({
        ...release,
        postings: leg === undefined ? [] : [{ ...leg, debit: leg.credit, credit: leg.debit }],
      }),
    ).rejects.toMatchObject({ code: "INSUFFICIENT_BALANCE" });
    expect((await customerBalances(ledger.database, id))?.[0]).toMatchObject({
      availableUnits: 10n,
      heldUnits: 0n,
    });
  });

  it("refuses a customer it does not know", async () => {
    await expect(post(credit("ghost-1", "ghost", 1n))).rejects.toMatchObject({
      code: "UNKNOWN_CUSTOMER",
    });
  });

  it("lets exactly one of racing holds have the last coins", async () => {
    const id = await customer("race");
    await post(credit("race-0", id, 100n));
    const results = await Promise.allSettled(
      Array.from({ length: 12 }, (_, index) => post(hold(`race-hold-${index}`, id, 60n))),
    );
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect((await customerBalances(ledger.database, id))?.[0]).toMatchObject({
      availableUnits: 40n,
      heldUnits: 60n,
    });
  });

  it("does not lose or double anything when the same keys race in opposite orders", async () => {
    const left = await customer("cross-a");
    const right = await customer("cross-b");
    const entries = Array.from({ length: 20 }, (_, index) =>
      credit(`cross-${index}`, index % 2 === 0 ? left : right, 1n),
    );
    const counts = await Promise.all(
      [entries, entries.toReversed(), entries, entries.toReversed()].map((list) =>
        ledger.database.transaction(async (tx) => (await postJournals(tx, list)).size),
      ),
    );
    expect(counts.toSorted((a, b) => a - b)).toEqual([0, 0, 0, 20]);
    for (const id of [left, right]) {
      expect((await customerBalances(ledger.database, id))?.[0]?.availableUnits).toBe(10n);
    }
  });
});

describe("the database itself", () => {
  const statements: readonly (readonly [string, string])[] = [
    ["changing a posting", `UPDATE posting SET amount_units = 1`],
    ["deleting postings", `DELETE FROM posting`],
    ["emptying the journal", `TRUNCATE journal_entry CASCADE`],
    ["changing an entry", `UPDATE journal_entry SET memo = 'x'`],
    ["changing an event", `UPDATE event SET type = 'x'`],
    ["deleting events", `DELETE FROM event`],
    ["writing a balance", `UPDATE customer_balance SET available_units = 10`],
    ["adding a balance", `INSERT INTO customer_balance VALUES ('poor', 'X', 1, 1)`],
    ["deleting a balance", `DELETE FROM customer_balance`],
    ["moving the cursor back", `UPDATE watch_cursor SET height = -2`],
    ["deleting the cursor", `DELETE FROM watch_cursor`],
    ["deleting the event counter", `DELETE FROM event_counter`],
    [
      "a posting of zero",
      `INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
       SELECT min(id), 99, 'TOKEN', 'asset:hot_wallet', 'liability:suspense', 0 FROM journal_entry`,
    ],
    [
      "a posting on one account",
      `INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
       SELECT min(id), 99, 'TOKEN', 'asset:hot_wallet', 'asset:hot_wallet', 1 FROM journal_entry`,
    ],
    [
      "a posting on an unknown account",
      `INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
       SELECT min(id), 99, 'TOKEN', 'asset:pocket', 'liability:suspense', 1 FROM journal_entry`,
    ],
    [
      "a raw posting that takes more than a customer has",
      `INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
       SELECT min(id), 99, 'TOKEN', 'liability:customer:poor', 'liability:suspense', 11
         FROM journal_entry`,
    ],
  ];
  it.each(statements)("refuses %s", async (_what, statement) => {
    await customer("poor");
    await post(credit("poor-1", "poor", 10n));
    await expect(ledger.database.query(statement)).rejects.toThrow();
  });

  it("moves a customer's balance with a raw posting too", async () => {
    const id = await customer("raw");
    await post(credit("raw-1", id, 10n));
    await ledger.database.query(
      `INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
       SELECT id, 1, 'TOKEN', 'liability:customer:raw', 'liability:suspense', 4
         FROM journal_entry WHERE idem_key = 'raw-1'`,
    );
    expect((await customerBalances(ledger.database, id))?.[0]?.availableUnits).toBe(6n);
  });
});
