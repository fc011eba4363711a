/**
 * The questions of migrations 25 and 27 asked about all payments of a block at once. Each call of a function
 * that sets how it is planned costs some 30 us, beside 5 for what it looks up.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * One row for each that is asked about. A hash belongs to one attempt at most, and an attempt to one slot.
 * Subqueries of one value are read by their key: of an EXISTS all keys may be gathered first.
 */
const EXPLANATIONS = `
  CREATE FUNCTION explanations_of(payers text[], mined text[])
  RETURNS TABLE (wallet text, hash text, explanation text)
  LANGUAGE sql STABLE ROWS 100 SET enable_seqscan = off AS $$
    SELECT asked.wallet, asked.hash, CASE
      WHEN (SELECT true FROM recovered_payment r
             WHERE r.tx_hash = asked.hash AND r.wallet = asked.wallet)
        THEN 'recovered'
      WHEN (SELECT s.wallet = asked.wallet AND (s.outcome IS NULL OR s.mined_hash = asked.hash)
              FROM nonce_slot s
             WHERE s.id = (SELECT a.slot_id FROM withdrawal_attempt a WHERE a.hash = asked.hash))
        THEN 'withdrawal'
      WHEN (SELECT true FROM journal_entry e
             WHERE e.idem_key = 'outflow:' || asked.hash || ':' || asked.wallet)
        THEN 'outflow'
    END
      FROM unnest(payers, mined) AS asked (wallet, hash)
  $$;
  CREATE OR REPLACE FUNCTION explanation_of(payer text, mined text) RETURNS text
  LANGUAGE sql STABLE AS $$
    SELECT explanation FROM explanations_of(ARRAY[payer], ARRAY[mined])
  $$;`;

/**
 * One row for each posting, and one without units where the ending took nothing. No row for what has
 * not ended, was signed for another wallet, or is booked in another way already. Each table is read by its
 * key for one payment after the other (OFFSET 0): joined, a plan was seen that read 68 pages for each.
 */
const BOOKED = `
  DROP FUNCTION booked_of_payment(text, text);
  CREATE FUNCTION booked_of_payments(payers text[], mined text[])
  RETURNS TABLE (wallet text, hash text, withdrawal_id text, status text, asset text,
                 units numeric, is_fee boolean)
  LANGUAGE sql STABLE ROWS 100 SET enable_seqscan = off AS $$
    SELECT asked.wallet, asked.hash, s.withdrawal_id,
           (SELECT w.status FROM withdrawal w WHERE w.id = s.withdrawal_id),
           p.asset, p.amount_units, p.debit = 'expense:network_fee'
      FROM unnest(payers, mined) AS asked (wallet, hash)
     CROSS JOIN LATERAL (
       SELECT * FROM nonce_slot s
        WHERE s.id = (SELECT a.slot_id FROM withdrawal_attempt a WHERE a.hash = asked.hash)
       OFFSET 0) AS s
     CROSS JOIN LATERAL (
       SELECT e.id FROM journal_entry e
        WHERE e.idem_key = 'withdrawal:' || s.withdrawal_id || ':end'
       OFFSET 0) AS e
      LEFT JOIN LATERAL (
       SELECT * FROM posting p
        WHERE p.journal_id = e.id
          -- The account is compared as a value: by its index it would be all postings of the wallet.
          AND p.credit || '' IN ('asset:wallet:' || asked.wallet, 'asset:hot_wallet')
       OFFSET 0) AS p ON true
     WHERE s.wallet = asked.wallet AND s.outcome IN ('paid', 'reverted', 'cancelled')
       -- A recovered payment is booked apart from its request, and never taken back.
       AND (SELECT true FROM recovered_payment r WHERE r.tx_hash = s.mined_hash) IS NULL
       AND (SELECT true FROM journal_entry o
             WHERE o.idem_key = 'outflow:' || asked.hash || ':' || asked.wallet) IS NULL
  $$;`;

/** Functions only. */
export class LookupsOfMany1760000000033 implements MigrationInterface {
  readonly name = "LookupsOfMany1760000000033";

  /** No row is read or written. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [EXPLANATIONS, BOOKED]) await runner.query(part);
  }

  /** What explains a payment decides whether signing freezes. */
  async down(): Promise<void> {
    throw new Error("what tells our payments from others' is never dropped by a migration");
  }
}
