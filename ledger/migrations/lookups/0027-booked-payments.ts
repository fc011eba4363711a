/**
 * What the ending of a payment took of its wallet, asked by a transaction that was signed for it: each
 * step goes by a key, as in migrations 25 and 26, since every block with payments asks.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * One row for each posting, and one without units where the ending took nothing. No row for what has
 * not ended, was signed for another wallet, or is booked in another way already.
 */
const BOOKED = `
  CREATE FUNCTION booked_of_payment(payer text, mined text)
  RETURNS TABLE (withdrawal_id text, status text, asset text, units numeric, is_fee boolean)
  LANGUAGE sql STABLE ROWS 2 SET enable_seqscan = off AS $$
    SELECT w.id, w.status, p.asset, p.amount_units, p.debit = 'expense:network_fee'
      FROM nonce_slot s
      JOIN withdrawal w ON w.id = s.withdrawal_id
      JOIN journal_entry e ON e.idem_key = 'withdrawal:' || s.withdrawal_id || ':end'
      -- The account is compared as a value: by its index it would be all postings of the wallet.
      LEFT JOIN posting p ON p.journal_id = e.id
       AND p.credit || '' IN ('asset:wallet:' || payer, 'asset:hot_wallet')
     WHERE s.id = (SELECT a.slot_id FROM withdrawal_attempt a WHERE a.hash = mined)
       AND s.wallet = payer AND s.outcome IN ('paid', 'reverted', 'cancelled')
       -- A recovered payment is booked apart from its request, and never taken back.
       AND NOT EXISTS (SELECT 1 FROM recovered_payment r WHERE r.tx_hash = s.mined_hash)
       AND NOT EXISTS (SELECT 1 FROM journal_entry o
                        WHERE o.idem_key = 'outflow:' || mined || ':' || payer)
  $$;`;

/** One function. */
export class BookedPayments1760000000027 implements MigrationInterface {
  readonly name = "BookedPayments1760000000027";

  /** No row is read or written. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(BOOKED);
  }

  /** Nothing is kept by it. */
  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION booked_of_payment(text, text)`);
  }
}
