/** What is indexed of a withdrawal's state: the database and the program mean the same by it. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { phaseOf, WITHDRAWAL_STATUSES } from "../../../../ledger/requests/withdrawal-status.js";
import { openTestLedger, type TestLedger } from "../../../helpers/services/ledger.js";

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
