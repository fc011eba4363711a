/**
 * What a recovery booked of a payment, asked as migration 33 asks what endings have booked: such a payment
 * can be mined again with another outcome as well, and was held against nothing.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * One row for each posting, and one without units where nothing was taken. No row for what has not ended,
 * was signed for another wallet, or is booked in another way already. The ending of a request that a
 * recovered payment settled took nothing of the wallet: the entry of the recovery did. Without a request
 * there is no withdrawal. Each table is read by its key for one payment after the other (OFFSET 0).
 */
const BOOKED = `
  CREATE OR REPLACE FUNCTION booked_of_payments(payers text[], mined text[])
  RETURNS TABLE (wallet text, hash text, withdrawal_id text, status text, asset text,
                 units numeric, is_fee boolean)
  LANGUAGE sql STABLE ROWS 100 SET enable_seqscan = off AS $$
    SELECT asked.wallet, asked.hash, ended.withdrawal_id,
           coalesce((SELECT w.status FROM withdrawal w WHERE w.id = ended.withdrawal_id),
                    ended.decision),
           p.asset, p.amount_units, p.debit = 'expense:network_fee'
      FROM unnest(payers, mined) AS asked (wallet, hash)
     CROSS JOIN LATERAL (
       SELECT s.withdrawal_id, NULL AS decision, 'withdrawal:' || s.withdrawal_id || ':end' AS key
         FROM nonce_slot s
        WHERE s.id = (SELECT a.slot_id FROM withdrawal_attempt a WHERE a.hash = asked.hash)
          AND s.wallet = asked.wallet AND s.outcome IN ('paid', 'reverted', 'cancelled')
          AND (SELECT true FROM recovered_payment r WHERE r.tx_hash = s.mined_hash) IS NULL
       UNION ALL
       SELECT r.withdrawal_id, coalesce(r.decision, 'undecided'), 'recovered-payment:' || r.tx_hash
         FROM recovered_payment r
        WHERE r.tx_hash = asked.hash AND r.wallet = asked.wallet
       OFFSET 0) AS ended
     CROSS JOIN LATERAL (
       SELECT e.id FROM journal_entry e WHERE e.idem_key = ended.key
       OFFSET 0) AS e
      LEFT JOIN LATERAL (
       SELECT * FROM posting p
        WHERE p.journal_id = e.id
          -- The account is compared as a value: by its index it would be all postings of the wallet.
          AND p.credit || '' IN ('asset:wallet:' || asked.wallet, 'asset:hot_wallet')
       OFFSET 0) AS p ON true
     WHERE (SELECT true FROM journal_entry o
             WHERE o.idem_key = 'outflow:' || asked.hash || ':' || asked.wallet) IS NULL
  $$;`;

/** One function. */
export class RecoveredMinedAgain1760000000036 implements MigrationInterface {
  readonly name = "RecoveredMinedAgain1760000000036";

  /** No row is read or written. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(BOOKED);
  }

  /** What was booked of a payment decides whether signing freezes. */
  async down(): Promise<void> {
    throw new Error("what our payments took is never forgotten by a migration");
  }
}
