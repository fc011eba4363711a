/**
 * Tamper evidence: what a superuser changes behind all rules is named by somebody who has nothing but
 * the file of an export. The ledger is a real one, written by a watcher on a fake chain.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { runVerifyLedger } from "../../../../cli/audit/ledger/commands.js";
import { readHead } from "../../../../ledger/tamper/chainer.js";
import { BOB, ExportedBooks, putBack } from "./exported-books.js";

let books: ExportedBooks;
beforeAll(async () => {
  books = await ExportedBooks.open();
});
afterAll(() => books?.close());

describe("an export of the ledger", () => {
  const first = (table: string, id: string) => `${id} = (SELECT min(${id}) FROM ${table})`;

  it.each([
    [
      "the amount of a posting",
      "posting",
      `UPDATE posting SET amount_units = amount_units + 1 WHERE ${first("posting", "id")}`,
      /^TAMPERED: journal entry 1 \(wallet-inflow:0-0-0\) was changed after link \d+ .*"1000001"/,
    ],
    [
      "who is credited",
      "posting",
      `UPDATE posting SET credit = 'liability:customer:alice'
        WHERE id = (SELECT min(id) FROM posting WHERE credit = 'liability:customer:${BOB}')`,
      /^TAMPERED: journal entry \d+ \(deposit:2-/,
    ],
    [
      "the height of an entry",
      "journal_entry",
      `UPDATE journal_entry SET effective_height = 5 WHERE ${first("journal_entry", "id")}`,
      /^TAMPERED: journal entry 1 /,
    ],
    [
      "an event",
      "event",
      `UPDATE event SET type = 'deposit.forged' WHERE ${first("event", "seq")}`,
      /^TAMPERED: event 1 \(deposit\.forged\) was changed/,
    ],
    [
      "a deposit's amount",
      "deposit",
      `UPDATE deposit SET amount_units = 9 WHERE ${first("deposit", "seq")}`,
      /^TAMPERED: deposit 1 \(1-0-\d\) was changed/,
    ],
    [
      "whose a deposit is",
      "deposit",
      `UPDATE deposit SET customer_id = '${BOB}' WHERE ${first("deposit", "seq")}`,
      /^TAMPERED: deposit 1-0-\d is bob's, and was alice's when told/,
    ],
    [
      "whose an address is",
      "deposit_address",
      `UPDATE deposit_address SET customer_id = '${BOB}' WHERE index = 0`,
      /^TAMPERED: address 1 \(0x[0-9a-f]{40}\) was changed after link \d+ .*"bob"/,
    ],
    [
      "what became of a deposit",
      "deposit",
      `UPDATE deposit SET status = 'suspense' WHERE ${first("deposit", "seq")}`,
      /^TAMPERED: deposit 1-0-\d is suspense, and the last that was told is deposit\.credited/,
    ],
    [
      "what a withdrawal pays",
      "withdrawal",
      `UPDATE withdrawal SET amount_units = 1`,
      /^TAMPERED: withdrawal 1 \(.*\) was changed/,
    ],
    [
      "what became of a withdrawal",
      "withdrawal",
      `UPDATE withdrawal SET status = 'settled'`,
      /^TAMPERED: withdrawal wd_\S+ is settled, and the last that was told is withdrawal\.accepted/,
    ],
    [
      "who asked for a withdrawal",
      "withdrawal",
      `UPDATE withdrawal SET requested_by = 'ann'`,
      /^TAMPERED: withdrawal wd_\S+ was asked for by "ann", and the decision .* says by null/,
    ],
    [
      "what a token is",
      "asset",
      `UPDATE asset SET decimals = 18 WHERE symbol = 'GOLD'`,
      /^TAMPERED: asset \d+ \(GOLD\) was changed/,
    ],
    [
      "the code that was accepted",
      "token_state_change",
      `UPDATE token_state_change SET code_hash = '0x${"00".repeat(32)}'`,
      /^TAMPERED: token state \d+ \(GOLD\) was changed/,
    ],
    [
      "why something was not credited",
      "token_sighting",
      `UPDATE token_sighting SET reason = 'NFT'`,
      /^TAMPERED: sighting \d+ \(0xab.*\) was changed/,
    ],
    [
      "which policy was in force",
      "policy_activation",
      `UPDATE policy_activation SET at = at - interval '1 day'`,
      /^TAMPERED: activation \d+ .* was changed/,
    ],
    [
      "since when a destination is listed",
      "policy_listing",
      `UPDATE policy_listing SET at = at - interval '30 days'`,
      /^TAMPERED: listing \d+ \(alice\) was changed/,
    ],
    [
      "what was decided",
      "policy_decision",
      `UPDATE policy_decision SET rules = '{"approvals": 0}'`,
      /^TAMPERED: decision \d+ \(wd_.*\) was changed/,
    ],
    [
      "who approved",
      "withdrawal_approval",
      `UPDATE withdrawal_approval SET key_id = 'bob'`,
      /^TAMPERED: approval \d+ \(wd_.*\) was changed/,
    ],
    [
      "what screening said",
      "screening_verdict",
      `UPDATE screening_verdict SET reference = 'case 2'`,
      /^TAMPERED: verdict \d+ \(wd_.*\) was changed/,
    ],
    [
      "who set the kill switch",
      "kill_switch",
      `UPDATE kill_switch SET set_by = 'bob'`,
      /^TAMPERED: kill switch \d+ \(stop-new\) was changed/,
    ],
    [
      "what an operator decided",
      "operator_decision",
      `UPDATE operator_decision SET terms = '{"action": "write-off-payment"}' WHERE key = 'made'`,
      /^TAMPERED: proposal 1 \(adjustment\) was changed/,
    ],
    [
      "who decided",
      "operator_decision",
      `UPDATE operator_decision SET decided_by = 'cid' WHERE key = 'made'`,
      /^TAMPERED: decision 1 is done by "cid", and what was made of it says done by "bea"/,
    ],
    [
      "that a decision waits",
      "operator_decision",
      `UPDATE operator_decision SET status = 'done', decided_by = 'bea', decided_at = now()
        WHERE key = 'waiting'`,
      /^TAMPERED: decision 2 is done by "bea", and what was made of it says proposed/,
    ],
    [
      "what became of a decision",
      "operator_decision_outcome",
      `UPDATE operator_decision_outcome SET status = 'refused'`,
      /^TAMPERED: outcome 1 \(1\) was changed/,
    ],
    [
      "which wallet it is",
      "wallet",
      `UPDATE wallet SET from_height = 9`,
      /^TAMPERED: wallet 1 \(0x[0-9a-f]{40}\) was changed/,
    ],
    [
      "whether a wallet pays",
      "wallet",
      `UPDATE wallet SET status = 'active'`,
      /^TAMPERED: wallet 0x[0-9a-f]{40} is active by "ann": "rotated", and .* says draining by "ann"/,
    ],
    [
      "who drained a wallet",
      "wallet_change",
      `UPDATE wallet_change SET operator = 'bob' WHERE status = 'draining'`,
      /^TAMPERED: wallet change 2 \(0x[0-9a-f]{40}\) was changed/,
    ],
    [
      "who acknowledged an outflow",
      "foreign_transaction_acknowledged",
      `UPDATE foreign_transaction_acknowledged SET acknowledged_by = 'bob'`,
      /^TAMPERED: acknowledgement 1 \(0xab.*\) was changed/,
    ],
    [
      "how far the watcher went back",
      "chain_rewind",
      `UPDATE chain_rewind SET to_height = 1`,
      /^TAMPERED: rewind 1 \(ann\) was changed/,
    ],
    [
      "a link",
      "chain_link",
      `UPDATE chain_link SET digest = repeat('0', 64) WHERE n = 2`,
      /^TAMPERED: link 2 \(.*\) has another hash/,
    ],
    [
      "a balance",
      "customer_balance",
      `UPDATE customer_balance SET available_units = 5 WHERE customer_id = 'alice'`,
      /^TAMPERED: the balance of TOKEN liability:customer:alice is kept as 5, and .* 1007/,
    ],
  ] as const)("names %s", async (_what, table, statement, expected) => {
    // The CHECK of the chain's hashes holds for superusers too: it goes first.
    await books.tamper(
      "ALTER TABLE chain_link DROP CONSTRAINT IF EXISTS chain_link_hash",
      `CREATE TABLE kept AS SELECT * FROM ${table}`,
      statement,
    );
    const { code, lines } = await books.verdictOf(await books.exported(books.copy.url));
    expect(code).toBe(1);
    expect(lines[0]).toMatch(expected);
    // What is not as it was is named by the next one.
    await books.tamper(`DELETE FROM ${table}`, putBack(table), "DROP TABLE kept");
  });

  it("names nothing once all of that is as it was", async () => {
    expect((await books.verdictOf(await books.exported(books.copy.url))).lines).toEqual([
      expect.stringMatching(/^Nothing was changed/),
    ]);
  });

  it("names a row that is gone, and one that was put among older ones", async () => {
    const [row] = await books.bench.ledger.owner.query<{ seq: string }>(
      `SELECT max(seq)::text AS seq FROM event`,
    );
    await books.tamper(`CREATE TABLE kept AS SELECT * FROM event WHERE seq = ${row?.seq}`);
    await books.tamper(`DELETE FROM event WHERE seq = ${row?.seq}`);
    expect((await books.verdictOf(await books.exported(books.copy.url))).lines[0]).toMatch(
      new RegExp(`^TAMPERED: event ${row?.seq} is gone: link \\d+ was about it`),
    );
    await books.tamper("INSERT INTO event SELECT * FROM kept", "DROP TABLE kept");
    // As if these rows were linked long ago.
    await books.tamper(
      `UPDATE chain_cursor SET row_key = 1000 WHERE kind = 'entry'`,
      `INSERT INTO journal_entry (id, kind, idem_key) OVERRIDING SYSTEM VALUE
       VALUES (900, 'ledger.adjustment', 'forged')`,
    );
    expect((await books.verdictOf(await books.exported(books.copy.url))).lines[0]).toBe(
      "TAMPERED: journal entry 900 (forged) was put among rows that had their links",
    );
    await books.tamper("DELETE FROM journal_entry WHERE id = 900");
  });

  it("is known for another one when the whole chain was written anew", async () => {
    const { hash } = await readHead(books.bench.ledger.database);
    await books.tamper(
      "UPDATE event SET type = 'deposit.forged' WHERE seq = 1",
      "DELETE FROM chain_link",
    );
    await books.tamper("UPDATE chain_cursor SET row_key = 0");
    const file = await books.exported(books.copy.url);
    expect((await books.verdictOf(file)).code).toBe(0);
    expect((await books.verdictOf(file, hash)).lines).toEqual([
      `TAMPERED: no link has the hash ${hash}: this is another chain than the known one`,
    ]);
    // Of a file alone nobody can tell: who reads the verdict is told so.
    const told = async (head: { readonly head?: string }) => {
      const { lines } = await books.run(books.copy.url, (context, warn) =>
        runVerifyLedger(context, file, head, warn),
      );
      return lines.find((line) => line.startsWith("  known head"));
    };
    expect(await told({})).toMatch(/none given: .*written anew.*cut short.*--head/);
    expect(await told({ head: hash })).toBe(`  known head      ${hash}`);
  });
});
