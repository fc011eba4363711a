/**
 * Questions about a few rows read a few rows, on tables that are filled and that the planner knows
 * nothing about yet. Rows are counted, not time.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Sql } from "../../../../runtime/sql/sql.js";
import { parseAddress } from "../../../../chain/address.js";
import { freezeUnexplained } from "../../../../ledger/requests/unexplained-outflows.js";
import { toWithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../../ledger/policy/policy.js";
import { recordDecisions } from "../../../../ledger/policy/policy-store.js";
import { judgeAtSlot } from "../../../../ledger/policy/stored-judgement.js";
import { linkRows } from "../../../../ledger/tamper/chainer.js";
import { readUnlinked } from "../../../../ledger/tamper/linked-rows.js";
import {
  openTestLedger,
  registerTestWallets,
  type TestLedger,
} from "../../../helpers/services/ledger.js";
import { readBy } from "../../../helpers/services/rows-read.js";

const WALLET = parseAddress(`0x${"7".repeat(40)}`);
const OTHER = parseAddress(`0x${"8".repeat(40)}`);
const DESTINATION = `0x${"9".repeat(40)}`;

/** Open payments of the wallet when plans are made, when they are used, and those asked about. */
const FEW = 12;
const FILLED = 3_000;
const ASKED = 40;

let ledger: TestLedger;

beforeAll(async () => {
  ledger = await openTestLedger();
  const { owner } = ledger;
  await registerTestWallets(owner, WALLET, OTHER);
  await owner.query(
    `INSERT INTO hot_wallet (wallet, next_nonce) SELECT unnest($1::text[]), 1000000`,
    [[WALLET, OTHER]],
  );
  await owner.query(`INSERT INTO customer (id) VALUES ('alice')`);
  // A connection keeps the plans that it made while there was next to nothing.
  await owner.transaction(async (tx) => {
    // What the planner heard last is that nothing is there: then all ways look the same to it.
    await tx.query(`ANALYZE nonce_slot, withdrawal_attempt`);
    await fill(tx, 1, FEW);
    for (let n = 1; n <= FEW; n += 1) {
      await explain(tx, [n]);
      await explainMany(tx, [n]);
      await slot(tx, [n]);
    }
    await fill(tx, FEW + 1, FILLED);
    const asked = Array.from({ length: ASKED }, (_, index) => FEW + 1 + index * 50);
    readByExplaining = await readBy(tx, EXPLAINED_BY, async () => {
      expect(await explain(tx, asked)).toEqual(asked.map(() => "withdrawal"));
    });
    readByExplainingMany = await readBy(tx, EXPLAINED_BY, async () => {
      expect(await explainMany(tx, asked)).toEqual(asked.map(() => "withdrawal"));
    });
    readBySlotting = await readBy(tx, ["nonce_slot"], () => slot(tx, asked));
  });
});
afterAll(() => ledger.drop());

/** Tables with what explains a transaction. */
const EXPLAINED_BY = ["nonce_slot", "withdrawal_attempt"];

let readByExplaining: Record<string, number>;
let readByExplainingMany: Record<string, number>;
let readBySlotting: Record<string, number>;

const hashOf = (n: number) => `0x${n.toString(16).padStart(64, "0")}`;

/** Accepted payments of the wallet with their slots and attempts, by number. */
async function fill(tx: Sql, first: number, last: number): Promise<void> {
  await tx.query(
    `INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset, destination,
       destination_text, amount_units, status)
     SELECT 'wd_' || n, n, '', 'alice', 'TOKEN', $3, $3, 1, 'accepted'
       FROM generate_series($1::integer, $2::integer) AS n`,
    [first, last, DESTINATION],
  );
  await tx.query(
    `INSERT INTO nonce_slot (wallet, nonce, withdrawal_id, gas_limit, gas_price_atoken,
       reserved_atoken)
     SELECT $3, n, 'wd_' || n, 21000, 1, 21001 FROM generate_series($1::integer, $2::integer) AS n`,
    [first, last, WALLET],
  );
  await tx.query(
    `INSERT INTO withdrawal_attempt (slot_id, n, kind, raw, hash, gas_limit, gas_price_atoken)
     SELECT id, 0, 'payment', '0x00', '0x' || lpad(to_hex(nonce::integer), 64, '0'), 21000, 1
       FROM nonce_slot WHERE nonce BETWEEN $1::integer AND $2::integer`,
    [first, last],
  );
}

/** What explains transactions of a wallet, those of its payments by number. */
async function explain(
  sql: Sql,
  numbers: readonly number[],
  wallet = WALLET,
): Promise<(string | null)[]> {
  const rows = await sql.query<{ explanation: string | null }>(
    `SELECT explanation_of($1, hash) AS explanation FROM unnest($2::text[]) AS hash`,
    [wallet, numbers.map(hashOf)],
  );
  return rows.map(({ explanation }) => explanation);
}

/** The same, asked about all of them at once. */
async function explainMany(
  sql: Sql,
  numbers: readonly number[],
  wallet = WALLET,
): Promise<(string | null)[]> {
  const rows = await sql.query<{ wallet: string; hash: string; explanation: string | null }>(
    `SELECT * FROM explanations_of($1::text[], $2::text[])`,
    [numbers.map(() => wallet), numbers.map(hashOf)],
  );
  expect(rows.map(({ hash }) => hash)).toEqual(numbers.map(hashOf));
  expect(rows.every((row) => row.wallet === wallet)).toBe(true);
  return rows.map(({ explanation }) => explanation);
}

function slot(sql: Sql, numbers: readonly number[]): Promise<unknown> {
  return sql.query(`UPDATE withdrawal SET status = 'slotted' WHERE id = ANY ($1::text[])`, [
    numbers.map((n) => `wd_${n}`),
  ]);
}

describe("a transaction of a wallet", () => {
  it("is explained by its attempt and the slot of that alone", () => {
    const one = { nonce_slot: ASKED, withdrawal_attempt: ASKED };
    expect(readByExplaining).toEqual(one);
    expect(readByExplainingMany).toEqual(one);
  });

  it("is explained for the wallet that signed it only, and by nothing when nobody did", async () => {
    const { owner } = ledger;
    for (const ask of [explain, explainMany]) {
      expect(await ask(owner, [1, FILLED + 1])).toEqual(["withdrawal", null]);
      expect(await ask(owner, [1], OTHER)).toEqual([null]);
    }
    await owner.query(
      `UPDATE nonce_slot SET outcome = 'foreign', mined_hash = $1 WHERE wallet = $2 AND nonce = $3`,
      [hashOf(FILLED + 2), WALLET, FEW + 2],
    );
    for (const ask of [explain, explainMany]) expect(await ask(owner, [FEW + 2])).toEqual([null]);
  });

  it("is explained by an outflow that a person booked, of its own wallet", async () => {
    const { owner } = ledger;
    await owner.query(
      `INSERT INTO journal_entry (kind, idem_key, effective_height) VALUES ('outflow', $1, 5)`,
      [`outflow:${hashOf(FILLED + 3)}:${WALLET}`],
    );
    for (const ask of [explain, explainMany]) {
      expect(await ask(owner, [FILLED + 3, 1])).toEqual(["outflow", "withdrawal"]);
      expect(await ask(owner, [FILLED + 3], OTHER)).toEqual([null]);
    }
  });
});

describe("the rule about slots of active wallets", () => {
  it("reads the slots of the payments that get one, and no others", () => {
    expect(readBySlotting).toEqual({ nonce_slot: ASKED });
  });

  it("refuses a payment whose only slot was lost to a stranger, or whose wallet is drained", async () => {
    const { owner } = ledger;
    const refusal = /has no nonce of an active wallet/;
    await expect(slot(owner, [FEW + 2])).rejects.toMatchObject({ cause: { message: refusal } });
    await owner.query(`UPDATE wallet SET status = 'draining' WHERE address = $1`, [WALLET]);
    await expect(slot(owner, [FEW + 3])).rejects.toMatchObject({ cause: { message: refusal } });
    await owner.query(`UPDATE wallet SET status = 'active' WHERE address = $1`, [WALLET]);
    await slot(owner, [FEW + 3]);
  });
});

describe("what was decided about payments that are to get a nonce", () => {
  const BATCH = 400;

  it("is read of those, and of no others that the same policy let pass", async () => {
    const policy = hashPolicy(PERMISSIVE_POLICY);
    const ids = Array.from({ length: FILLED }, (_, index) => toWithdrawalId(`wd_${index + 1}`));
    const decisions = ids.map((withdrawalId) => {
      return { withdrawalId, outcome: "pay" as const, rules: { approvals: 0, signed: false } };
    });
    await ledger.owner.transaction(async (tx) => {
      await recordDecisions(tx, { policy, stage: "accept" }, decisions);
      await tx.query("ANALYZE withdrawal, policy_decision");
      const asked = ids.slice(-BATCH);
      const read = await readBy(tx, ["policy_decision"], async () => {
        const { allowed } = await judgeAtSlot(tx, { policy, wallet: WALLET }, asked);
        expect(allowed.size).toBe(BATCH);
      });
      expect(read["policy_decision"]).toBeLessThanOrEqual(BATCH);
    });
  });
});

describe("what the endings of payments booked", () => {
  const ACCOUNT = `asset:wallet:${WALLET}`;

  /** Ends payments by number: each cost the wallet 21,000 atoken. */
  async function end(tx: Sql, first: number, last: number): Promise<void> {
    await tx.query(
      `UPDATE nonce_slot SET outcome = 'reverted', mined_hash = $3 || lpad(to_hex(nonce::integer), 64, '0')
        WHERE nonce BETWEEN $1::integer AND $2::integer AND outcome IS NULL`,
      [first, last, "0x"],
    );
    await tx.query(
      `WITH ended AS (
         INSERT INTO journal_entry (kind, idem_key, effective_height)
         SELECT 'withdrawal.fail', 'withdrawal:wd_' || n || ':end', 5
           FROM generate_series($1::integer, $2::integer) AS n RETURNING id)
       INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
       SELECT id, 0, 'TOKEN', 'expense:network_fee', $3, 21000 FROM ended`,
      [first, last, ACCOUNT],
    );
  }

  function booked(tx: Sql, numbers: readonly number[]) {
    return tx.query<{ id: string; units: string; is_fee: boolean }>(
      `SELECT b.withdrawal_id AS id, b.units::text AS units, b.is_fee
         FROM booked_of_payments($1::text[], $2::text[]) AS b`,
      [numbers.map(() => WALLET), numbers.map(hashOf)],
    );
  }

  it("is found by the payments' own keys, however many the wallet made", async () => {
    await ledger.owner.transaction(async (tx) => {
      await tx.query(`ANALYZE nonce_slot, withdrawal_attempt, journal_entry, posting`);
      await end(tx, 101, 100 + FEW);
      for (let n = 1; n <= FEW; n += 1) await booked(tx, [100 + n]);
      await end(tx, 101 + FEW, FILLED);
      const asked = Array.from({ length: ASKED }, (_, index) => 200 + index * 50);
      const read = await readBy(
        tx,
        ["nonce_slot", "withdrawal", "withdrawal_attempt", "journal_entry", "posting"],
        async () => {
          expect(await booked(tx, asked)).toEqual(
            asked.map((n) => ({ id: `wd_${n}`, units: "21000", is_fee: true })),
          );
        },
      );
      const one = { nonce_slot: ASKED, withdrawal: ASKED, withdrawal_attempt: ASKED };
      expect(read).toEqual({ ...one, journal_entry: ASKED, posting: ASKED });
    });
  });
});

describe("a receipt", () => {
  it("is written beside its slot, and no index with it", async () => {
    const { owner } = ledger;
    const [first, last] = [FILLED + 11, FILLED + 60];
    await owner.transaction((tx) => fill(tx, first, last));
    await owner.transaction(async (tx) => {
      const before = await written(tx);
      await tx.query(
        `UPDATE nonce_slot SET mined_hash = $3 || lpad(to_hex(nonce::integer), 64, '0'), block_number = 5,
                block_hash = $4, gas_used = 21000, effective_gas_price_atoken = 1
          WHERE nonce BETWEEN $1::integer AND $2::integer`,
        [first, last, "0x", hashOf(5)],
      );
      const after = await written(tx);
      const rows = last - first + 1;
      expect(after).toEqual({ all: before.all + rows, inPage: before.inPage + rows });
    });
  });

  /** New versions of slots so far, and those that stayed in their page. */
  async function written(tx: Sql): Promise<{ all: number; inPage: number }> {
    const [row] = await tx.query<{ all: string; in_page: string }>(
      `SELECT n_tup_upd::text AS all, n_tup_hot_upd::text AS in_page
         FROM pg_stat_xact_user_tables WHERE relname = 'nonce_slot'`,
    );
    return { all: Number(row?.all), inPage: Number(row?.in_page) };
  }
});

describe("rows without a link", () => {
  it("are found without reading the links of a kind from its beginning", async () => {
    const { database, owner } = ledger;
    await owner.query(
      `WITH next AS (UPDATE event_counter SET seq = seq + 8000 RETURNING seq)
       INSERT INTO event (seq, epoch, type, data)
       SELECT seq - 8000 + n, 1, 'deposit.detected', '{}' FROM next, generate_series(1, 8000) AS n`,
    );
    while ((await linkRows(database)).linked > 0);
    await owner.query(
      `WITH next AS (UPDATE event_counter SET seq = seq + 10 RETURNING seq)
       INSERT INTO event (seq, epoch, type, data)
       SELECT seq - 10 + n, 1, 'deposit.detected', '{}' FROM next, generate_series(1, 10) AS n`,
    );
    await owner.transaction(async (tx) => {
      const read = await readBy(tx, ["chain_link", "event"], async () => {
        const found = await readUnlinked(tx, "event", { limit: 500, reach: "recent" });
        expect(found).toHaveLength(10);
      });
      // The last thousand, and what finds where they begin.
      expect(read["chain_link"]).toBeLessThanOrEqual(1_100);
      expect(read["event"]).toBeLessThanOrEqual(1_100);
    });
  });
});

describe("a request that ends", () => {
  it("asks for what explains an outflow of no outflow that a person has acknowledged", async () => {
    const { owner } = ledger;
    await owner.query(
      `INSERT INTO foreign_outflow (wallet, tx_hash, asset, amount_units, fee_atoken, height)
       SELECT $1, '0xff' || lpad(to_hex(n), 62, '0'), 'TOKEN', n, 1, n
         FROM generate_series(1, $2::integer) AS n`,
      [WALLET, FILLED],
    );
    await owner.query(
      `INSERT INTO foreign_transaction_acknowledged (wallet, tx_hash, acknowledged_by, reason)
       SELECT wallet, tx_hash, 'ann', 'looked' FROM foreign_outflow WHERE height > $1`,
      [ASKED],
    );
    await owner.query(
      `INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset, destination,
         destination_text, amount_units, status)
       VALUES ('wd_ends', 'ends', '', 'alice', 'TOKEN', $1, $1, 1, 'accepted')`,
      [DESTINATION],
    );
    await owner.transaction(async (tx) => {
      const asked = async () => {
        const [row] = await tx.query<{ scans: number }>(
          `SELECT coalesce(idx_scan, 0)::integer AS scans FROM pg_stat_xact_user_tables
            WHERE relname = 'recovered_payment'`,
        );
        return Number(row?.scans);
      };
      const before = await asked();
      const events = await freezeUnexplained(tx, [toWithdrawalId("wd_ends")]);
      expect(events.map(({ type }) => type)).toEqual(["withdrawal.frozen"]);
      expect((await asked()) - before).toBe(ASKED);
    });
  });
});
