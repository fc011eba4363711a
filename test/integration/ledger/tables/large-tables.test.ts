/**
 * What is asked again and again, and what somebody waits for, reads no more rows because of all that was ever
 * booked and has ended. Rows are counted, not time.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { bisectBreaks } from "../../../../ledger/books/break-bisection.js";
import { readBooks } from "../../../../ledger/books/reconcile-books.js";
import { listDeposits } from "../../../../ledger/deposits/deposit-queries.js";
import { DEPOSIT_ADDRESSES, walletAccount } from "../../../../ledger/journal/accounts.js";
import { hashPolicy, PERMISSIVE_POLICY, rulesOf } from "../../../../ledger/policy/policy.js";
import { rejudgePending } from "../../../../ledger/policy/stored-judgement.js";
import { linkAll, linkRows } from "../../../../ledger/tamper/chainer.js";
import { keepSums } from "../../../../ledger/treasury/kept-sums.js";
import { newestColdMoves } from "../../../../ledger/treasury/moves.js";
import { strandMoves } from "../../../../ledger/treasury/stranded-moves.js";
import { listSweeps, readMovingSweeps } from "../../../../ledger/treasury/sweeps.js";
import { readTreasury } from "../../../../ledger/treasury/treasury-figures.js";
import { fillDeliveries } from "../../../../ledger/webhooks/deliveries.js";
import type { Sql, SqlDatabase } from "../../../../runtime/sql/sql.js";
import {
  openTestLedger,
  registerTestWallets,
  type TestLedger,
} from "../../../helpers/services/ledger.js";
import { readBy } from "../../../helpers/services/rows-read.js";

const WALLET = parseAddress(`0x${"7".repeat(40)}`);

/** Addresses, each with a deposit that was swept long ago; so many blocks lie between two of them. */
const ADDRESSES = 4_000;
const BLOCKS = 250;

/** Events, ten batches of the chainer. */
const EVENTS = 20_000;

/** Requests that wait for persons, all of one day. */
const WAITING = 1_000;

/** What a few rows may take: not a share of all that there are. */
const FEW = 100;

let ledger: TestLedger;

beforeAll(async () => {
  ledger = await openTestLedger();
  const { owner } = ledger;
  await registerTestWallets(owner, WALLET);
  await owner.transaction(async (tx) => {
    // As the product would have left it; its rules would ask about each row.
    await tx.query(`SET LOCAL session_replication_role = replica`);
    await tx.query(
      `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
       SELECT n, ${ADDRESS}, 'c' || n, 0, true FROM ${NUMBERS}`,
    );
    await tx.query(
      `INSERT INTO deposit (id, address, customer_id, asset, amount_units, status, height, block_hash,
                            tx_hash, tx_index, op_index)
       SELECT n || '-0-0', ${ADDRESS}, 'c' || n, 'TOKEN', 10, 'credited', n * ${BLOCKS}, ${HASH}, ${HASH},
              0, 0 FROM ${NUMBERS}`,
    );
    await tx.query(
      `INSERT INTO journal_entry (id, kind, idem_key, effective_height, memo) OVERRIDING SYSTEM VALUE
       SELECT 3 * n + part, kinds[part + 1], kinds[part + 1] || ':' || n, n * ${BLOCKS} + part,
              CASE WHEN part = 1 THEN ${HASH} || ' ' || ${ADDRESS} ELSE ${HASH} END
         FROM ${NUMBERS}, generate_series(0, 2) AS part,
              (SELECT ARRAY['deposit.credit', 'sweep.out', 'sweep.in'] AS kinds) AS named`,
    );
    await tx.query(
      `INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
       SELECT 3 * n + part, 0, 'TOKEN', (ARRAY[$1, 'asset:in_transit', $2])[part + 1],
              (ARRAY['liability:customer:c' || n, $1, 'asset:in_transit'])[part + 1], 10
         FROM ${NUMBERS}, generate_series(0, 2) AS part`,
      [DEPOSIT_ADDRESSES, walletAccount(WALLET)],
    );
  });
  await owner.query(`ANALYZE`);
});
afterAll(() => ledger.drop());

const NUMBERS = `generate_series(1, ${ADDRESSES}) AS n`;
const ADDRESS = `'0x' || lpad(to_hex(n), 40, '0')`;
const HASH = `'0x' || lpad(to_hex(n), 64, '0')`;

const addressOf = (n: number) => parseAddress(`0x${n.toString(16).padStart(40, "0")}`);

/** The ledger, with all its transactions inside this one. */
function within(tx: Sql): SqlDatabase {
  return Object.assign(Object.create(ledger.owner) as SqlDatabase, {
    query: <Row>(text: string, parameters?: readonly unknown[]) => tx.query<Row>(text, parameters),
    transaction: <T>(work: (sql: Sql) => Promise<T>) => work(tx),
  });
}

describe("where a break begins", () => {
  /** The chain has one unit more from a block on. */
  function findBreak(account: string, address: Address, chain: (height: number) => bigint) {
    const line = { account, ledgerUnits: 0n, inFlight: [], chainUnits: 1n, differenceUnits: 1n };
    const found = { address, ledgerUnits: 0n, chainUnits: 1n, differenceUnits: 1n };
    return ledger.owner.transaction(async (tx) => {
      const past = {
        balances: (asked: readonly { readonly height: number }[]) =>
          Promise.resolve(asked.map(({ height }) => chain(height))),
        tokenBalances: () => Promise.resolve([]),
      };
      const height = ADDRESSES * BLOCKS;
      const breaks = [{ ...found, causes: [], moreCauses: 0 }];
      const report = { height, lines: [{ ...line, breaks, moreBreaks: 0 }] };
      let heights: readonly (number | undefined)[] = [];
      const read = await readBy(tx, ["journal_entry", "posting", "deposit"], async () => {
        heights = (await bisectBreaks(tx, past, report)).map((one) => one.height);
      });
      return { heights, read };
    });
  }

  it("is found at an address by its own entries, and not by those of all", async () => {
    const [from, until, since] = [700 * BLOCKS, 700 * BLOCKS + 1, 612_345];
    const { heights, read } = await findBreak(DEPOSIT_ADDRESSES, addressOf(700), (height) => {
      return (height >= from && height < until ? 10n : 0n) + (height >= since ? 1n : 0n);
    });
    expect(heights).toEqual([since]);
    for (const [table, rows] of Object.entries(read)) {
      expect({ table, isFew: rows < FEW }).toEqual({ table, isFew: true });
    }
  });

  it("is found at a wallet by a few looks at what it paid, however many blocks there are", async () => {
    const since = 812_345;
    const { heights, read } = await findBreak(walletAccount(WALLET), WALLET, (height) => {
      const came = BigInt(Math.floor((height - 2) / BLOCKS)) * 10n;
      return (came < 0n ? 0n : came) + (height >= since ? 1n : 0n);
    });
    expect(heights).toEqual([since]);
    expect(read["posting"]).toBeLessThanOrEqual(4 * ADDRESSES);
  });
});

describe("the books of a token", () => {
  it("are read from its own rows, and not from those of all assets", async () => {
    const { owner } = ledger;
    await owner.transaction(async (tx) => {
      const books = async () => {
        const same: Sql = {
          // The snapshot is this transaction's.
          query: (text, parameters) =>
            text.startsWith("SET TRANSACTION") ? Promise.resolve([]) : tx.query(text, parameters),
        };
        return readBooks(within(same));
      };
      const tables = ["posting", "deposit", "customer_balance"];
      const before = await readBy(tx, tables, books);
      await tx.query(
        `INSERT INTO asset (symbol, contract, decimals, from_height)
         VALUES ('T1', '0x' || repeat('e', 40), 0, 0)`,
      );
      await tx.query(
        `INSERT INTO token_state (asset, opened, changed_by) VALUES ('T1', true, 'test')`,
      );
      const withToken = await readBy(tx, tables, books);
      for (const table of tables) {
        const more = (withToken[table] ?? 0) - (before[table] ?? 0);
        expect({ table, more, isFew: more < FEW }).toMatchObject({ table, isFew: true });
      }
    });
  });
});

describe("a policy that comes into force", () => {
  it("adds up a day's requests for many that wait, and not for each of them", async () => {
    const { owner } = ledger;
    await owner.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO customer (id) SELECT 'c' || n FROM generate_series(1, ${WAITING}) AS n`,
      );
      await tx.query(`SET LOCAL session_replication_role = replica`);
      await tx.query(
        `INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset, destination,
           destination_text, amount_units, status, approvals_needed, approval_policy)
         SELECT 'wd_' || n, n, '', 'c' || n, 'TOKEN', ${ADDRESS}, ${ADDRESS}, 1, 'pending_approval', 1,
                repeat('0', 64)
           FROM generate_series(1, ${WAITING}) AS n`,
      );
      await tx.query(`SET LOCAL session_replication_role = origin`);
      await tx.query(`ANALYZE withdrawal`);
      const limits = (["customer", "asset", "destination"] as const).map((by) => {
        return { by, window: "day" as const, maxUnits: 1_000_000n, maxCount: undefined };
      });
      const rules = { ...rulesOf(PERMISSIVE_POLICY, "TOKEN"), limits };
      const policy = hashPolicy({ ...PERMISSIVE_POLICY, assets: new Map([["TOKEN", rules]]) });
      const read = await readBy(tx, ["withdrawal"], () => rejudgePending(within(tx), policy));
      const [row] = await tx.query(
        `SELECT count(*)::integer AS accepted FROM withdrawal WHERE status = 'accepted'`,
      );
      expect(row).toEqual({ accepted: WAITING });
      expect(read["withdrawal"]).toBeLessThan(100 * WAITING);
    });
  });
});

describe("a webhook", () => {
  it("is given the next events from where it stands on, at the head as far behind it", async () => {
    const { owner } = ledger;
    await owner.transaction(async (tx) => {
      await tx.query(
        `WITH next AS (UPDATE event_counter SET seq = seq + ${EVENTS} RETURNING seq, epoch)
         INSERT INTO event (seq, epoch, type, data)
         SELECT seq - ${EVENTS} + n, epoch, 'deposit.detected', '{}'
           FROM next, generate_series(1, ${EVENTS}) AS n`,
      );
      await tx.query(
        `INSERT INTO webhook (id, url, events, cursor_seq)
         SELECT name, 'https://example.org', '{*}', seq - behind
           FROM event_counter,
                (VALUES ('aaaaaaaaaaaa', 10), ('bbbbbbbbbbbb', ${EVENTS} - 10)) AS hook (name, behind)`,
      );
      await tx.query(`ANALYZE event, webhook`);
      const atHead = await readBy(tx, ["event"], () => fillDeliveries(tx, "aaaaaaaaaaaa"));
      expect(atHead["event"]).toBeLessThan(FEW);
      // A thousand at a time; each is looked at once more, by the key of its delivery.
      const behind = await readBy(tx, ["event"], () => fillDeliveries(tx, "bbbbbbbbbbbb"));
      expect(behind["event"]).toBeLessThanOrEqual(2_100);
    });
  });
});

describe("the treasury", () => {
  it("looks for what is under way among what is, and not among all that ever was", async () => {
    const { owner } = ledger;
    await owner.transaction(async (tx) => {
      await tx.query(`SET LOCAL session_replication_role = replica`);
      await tx.query(
        `INSERT INTO sweep (address, asset, wallet, amount_units, gas_limit, nonce, gas_price_atoken, state,
                            mined_hash)
         SELECT ${ADDRESS}, 'TOKEN', $1, 10, 21000, 0, 1, CASE WHEN n <= 10 THEN 'sent' ELSE 'settled' END,
                CASE WHEN n > 10 THEN ${HASH} END FROM ${NUMBERS}`,
        [WALLET],
      );
      await tx.query(
        `INSERT INTO treasury_move (kind, withdrawal_id, asset, destination, amount_units, sweep_id, state)
         SELECT CASE WHEN n <= 10 THEN 'cold' ELSE 'top-up' END, 'wd_' || n, 'TOKEN', ${ADDRESS}, 1,
                CASE WHEN n > 10 THEN n END, 'arrived' FROM ${NUMBERS}`,
      );
      await tx.query(`ANALYZE sweep, treasury_move`);
      const moving = { assets: ["TOKEN"], limit: 20 };
      const read = await readBy(tx, ["sweep", "treasury_move"], async () => {
        expect(await readMovingSweeps(tx, moving)).toHaveLength(10);
        expect((await newestColdMoves(tx)).size).toBe(1);
        expect(await strandMoves(tx)).toEqual([]);
      });
      expect(read["sweep"]).toBeLessThan(FEW);
      expect(read["treasury_move"]).toBeLessThan(FEW);
    });
  });

  it("shows what stands where from kept sums and what came since", async () => {
    const { owner } = ledger;
    await owner.transaction(async (tx) => {
      const tables = ["posting"];
      const added = await readTreasury(tx);
      await tx.query(`UPDATE chain_cursor SET row_key = $1 WHERE kind = 'entry'`, [3 * ADDRESSES]);
      while (await keepSums(tx, 5_000));
      let kept: Awaited<ReturnType<typeof readTreasury>> = [];
      const read = await readBy(tx, tables, async () => (kept = await readTreasury(tx)));
      expect(kept).toEqual(added);
      expect(kept.find(({ asset }) => asset === "TOKEN")).toMatchObject({
        hotUnits: BigInt(10 * ADDRESSES),
        depositAddressesUnits: 0n,
        inTransitUnits: 0n,
      });
      expect(read["posting"]).toBeLessThan(FEW);
    });
  });
});

describe("a list of what is rare", () => {
  it("is read from among that: nothing is found without a look at everything", async () => {
    await ledger.owner.transaction(async (tx) => {
      const page = { afterSeq: 0, limit: 100 };
      const read = await readBy(tx, ["deposit", "sweep"], async () => {
        for (const order of ["oldest", "newest"] as const) {
          expect(await listDeposits(tx, { ...page, order, status: "reversed" })).toEqual([]);
        }
        for (const state of ["void", "foreign", "failed", "frozen"] as const) {
          expect(await listSweeps(tx, { state, afterId: 0, limit: 100 })).toEqual([]);
        }
      });
      expect(read["deposit"]).toBeLessThan(FEW);
      expect(read["sweep"]).toBeLessThan(FEW);
    });
  });
});

describe("links of a backlog", () => {
  it("are made behind the last one, and do not pass over all that were made before", async () => {
    const { database, owner } = ledger;
    const { signal } = new AbortController();
    await owner.transaction(async (tx) => {
      const read = await readBy(tx, ["event", "chain_link"], () => linkAll(within(tx), { signal }));
      expect(read["event"]).toBeLessThan(4 * EVENTS);
    });
    expect((await linkRows(database)).linked).toBe(0);
  });
});
