/** What is indexed of a withdrawal's state: the database and the program mean the same by it. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { phaseOf, WITHDRAWAL_STATUSES } from "../../../ledger/requests/withdrawal-status.js";
import { openTestLedger, type TestLedger } from "../../helpers/services/ledger.js";

let ledger: TestLedger;

beforeAll(async () => {
  ledger = await openTestLedger();
});
afterAll(() => ledger.drop());

it("puts every state into the phase that the program looks for it in", async () => {
  const { owner } = ledger;
  await owner.query(`INSERT INTO customer (id) VALUES ('alice')`);
  for (const status of WITHDRAWAL_STATUSES) {
    await owner.query(
      `INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset, destination,
         destination_text, amount_units, status, cancel_cause, cancel_reason)
       VALUES ($1, $1, '', 'alice', 'TOKEN', $2, $2, 1, $1, 'request', 'it is not wanted')`,
      [status, `0x${"9".repeat(40)}`],
    );
  }
  const rows = await owner.query<{ status: string; phase: string }>(
    `SELECT status, phase FROM withdrawal ORDER BY position`,
  );
  const expected = WITHDRAWAL_STATUSES.map((status) => ({ status, phase: phaseOf(status) }));
  expect(rows).toEqual(expected);
});

it("indexes nothing that changes with a step inside a phase", async () => {
  const rows = await ledger.owner.query<{ indexdef: string }>(
    `SELECT indexdef FROM pg_indexes WHERE tablename = 'withdrawal'`,
  );
  for (const { indexdef } of rows) {
    expect(indexdef).not.toMatch(/\b(status|steps|reason|cancel_cause|cancel_reason)\b/);
  }
});

it("judges texts as expressions that count their characters do", async () => {
  const hex = (digits: number) => "0123456789abcdef".repeat(8).slice(0, digits);
  const names = ["a", "A9_.:-", "x".repeat(64), "x".repeat(65), "", "a b", "a\n", "é", "a/b"];
  const accounts = [
    "asset:hot_wallet",
    "asset:deposit_addresses",
    "asset:break",
    "liability:suspense",
    "equity:opening_capital",
    "expense:network_fee",
    "revenue:failed_payouts",
    "asset:hot_wallet2",
    "liability:other:a",
    ...names.flatMap((name) => [`liability:customer:${name}`, `liability:held:${name}`]),
  ];
  const hexes = [hex(40), hex(64), hex(63), hex(65), hex(64).toUpperCase(), `${hex(63)}g`, ""];
  const texts = [...accounts, ...names, ...hexes];
  const prefixed = [...texts, ...texts.flatMap((text) => [`0x${text}`, `0X${text}`, `x${text}`])];
  const all = [...prefixed, ...prefixed.map((text) => `asset:wallet:${text}`)];
  const rows = await ledger.owner.query<{ text: string; found: boolean[]; counted: boolean[] }>(
    `SELECT text,
            ARRAY[is_hex(text, 64), is_prefixed_hex(text, 40), is_prefixed_hex(text, 64),
                  is_name(text), is_account(text), is_wallet_account(text)] AS found,
            ARRAY[text ~ '^[0-9a-f]{64}$', text ~ '^0x[0-9a-f]{40}$', text ~ '^0x[0-9a-f]{64}$',
                  text ~ '^[A-Za-z0-9_.:-]{1,64}$',
                  text ~ ('^(asset:(hot_wallet|deposit_addresses|break)|liability:suspense'
                    '|equity:opening_capital|expense:network_fee|revenue:failed_payouts'
                    '|liability:(customer|held):[A-Za-z0-9_.:-]{1,64})$'),
                  text ~ '^asset:wallet:0x[0-9a-f]{40}$'] AS counted
       FROM unnest($1::text[]) AS text`,
    [all],
  );
  expect(rows).toHaveLength(all.length);
  for (const { text, found, counted } of rows)
    expect({ text, found }).toEqual({ text, found: counted });
  const fitting = rows.flatMap(({ found }) => found).filter(Boolean);
  expect(fitting.length).toBeGreaterThan(20);
});

it("has no rule that makes an expression count more than a few characters on a table that grows", async () => {
  const rows = await ledger.owner.query<{ rule: string }>(
    `SELECT conrelid::regclass || ': ' || pg_get_constraintdef(oid) AS rule FROM pg_constraint
      WHERE contype = 'c' AND conrelid IN ('posting'::regclass, 'withdrawal'::regclass,
        'withdrawal_attempt'::regclass, 'nonce_slot'::regclass, 'journal_entry'::regclass,
        'event'::regclass, 'chain_link'::regclass, 'api_call'::regclass,
        'policy_decision'::regclass)`,
  );
  expect(rows.length).toBeGreaterThan(20);
  for (const { rule } of rows) expect(rule).not.toMatch(/\{(\d{2,}|\d+,\d{2,})\}/);
});
