/** A ledger of before decisions and wallets were linked: what persons decided then is linked, too. */
import { expect, it } from "@jest/globals";
import { LEDGER_MIGRATIONS, openLedger } from "../../../ledger/database.js";
import { LinkedPersons1760000000038 } from "../../../ledger/migrations/tamper/0038-linked-persons.js";
import { linkAll } from "../../../ledger/tamper/chainer.js";
import { openDatabase } from "../../../runtime/sql/sql.js";
import { silentLog, TEST_IDENTITY } from "../../helpers/services/ledger.js";
import { createTestDatabase } from "../../helpers/services/postgres.js";

const { signal } = new AbortController();

it("links what was decided before, with what became of it", async () => {
  const { url, drop } = await createTestDatabase();
  const before = LEDGER_MIGRATIONS.slice(0, LEDGER_MIGRATIONS.indexOf(LinkedPersons1760000000038));
  const common = { url, log: silentLog, signal };
  const former = await openDatabase({
    ...common,
    migrations: before,
    applicationName: "test",
    poolSize: 2,
  });
  await former.query(
    `INSERT INTO operator_decision (kind, key, terms, reason, needs_second, status, proposed_by,
                                    decided_by, decided_at)
     VALUES ('adjustment', 'a', '{}', 'r', true, 'refused', 'ann', 'bea', '2026-01-03'),
            ('adjustment', 'b', '{}', 'r', false, 'done', 'ann', 'ann', '2026-01-02'),
            ('adjustment', 'c', '{}', 'r', true, 'proposed', 'ann', NULL, NULL)`,
  );
  const hash = `0x${"ab".repeat(32)}`;
  await former.query(
    `INSERT INTO foreign_transaction_acknowledged (wallet, tx_hash, acknowledged_by, reason)
     VALUES ($1, $2, 'ann', 'by hand')`,
    [`0x${"5a".repeat(20)}`, hash],
  );
  await former.close();
  const ledger = await openLedger({ ...common, identity: TEST_IDENTITY });
  const decide = (id: number) =>
    ledger.query(
      `UPDATE operator_decision SET status = 'done', decided_by = 'cid', decided_at = now()
        WHERE id = $1`,
      [id],
    );
  await decide(3);
  const outcomes = await ledger.query(
    `SELECT decision_id::integer AS id, status, decided_by AS by
       FROM operator_decision_outcome ORDER BY operator_decision_outcome.id`,
  );
  expect(outcomes).toEqual([
    { id: 2, status: "done", by: "ann" },
    { id: 1, status: "refused", by: "bea" },
    { id: 3, status: "done", by: "cid" },
  ]);
  for (const statement of [
    "UPDATE operator_decision_outcome SET status = 'done'",
    "DELETE FROM operator_decision_outcome",
  ]) {
    await expect(ledger.query(statement)).rejects.toMatchObject({
      details: { sqlState: "23001" },
    });
  }
  await linkAll(ledger, { signal });
  const links = await ledger.query(
    `SELECT kind, count(*)::integer AS count FROM chain_link
      WHERE kind IN ('proposal', 'outcome', 'acknowledgement') GROUP BY kind ORDER BY kind`,
  );
  expect(links).toEqual([
    { kind: "acknowledgement", count: 1 },
    { kind: "outcome", count: 3 },
    { kind: "proposal", count: 3 },
  ]);
  await ledger.close();
  await drop();
});
