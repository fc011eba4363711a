/**
 * Questions about one payment, asked so that PostgreSQL has one way to answer them: by its key. As
 * joins with a wallet they could be read from the wallet's side, too, and on tables without
 * statistics they were: every slot of the wallet for each payment.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** A hash belongs to one attempt at most, and an attempt to one slot. */
const EXPLANATION = `
  CREATE OR REPLACE FUNCTION explanation_of(payer text, mined text) RETURNS text
  LANGUAGE sql STABLE AS $$
    SELECT CASE
      WHEN EXISTS (SELECT 1 FROM recovered_payment r WHERE r.tx_hash = mined AND r.wallet = payer)
        THEN 'recovered'
      WHEN (SELECT s.wallet = payer AND (s.outcome IS NULL OR s.mined_hash = mined)
              FROM nonce_slot s
             WHERE s.id = (SELECT a.slot_id FROM withdrawal_attempt a WHERE a.hash = mined))
        THEN 'withdrawal'
      WHEN EXISTS (SELECT 1 FROM journal_entry e
                    WHERE e.idem_key = 'outflow:' || mined || ':' || payer)
        THEN 'outflow'
    END
  $$;`;

/** A withdrawal has one live slot at most. */
const SLOT_OF_WALLET = `
  CREATE OR REPLACE FUNCTION refuse_slot_of_wallet() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    payer text := (SELECT s.wallet FROM nonce_slot s WHERE s.withdrawal_id = NEW.id AND s.live);
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM wallet WHERE address = payer AND status = 'active') THEN
      RAISE EXCEPTION 'withdrawal % has no nonce of an active wallet', NEW.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    IF EXISTS (SELECT 1 FROM wallet WHERE address = NEW.destination) THEN
      RAISE EXCEPTION 'withdrawal % would pay a wallet of ours', NEW.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;`;

/** Two functions with the same answers; listed explicitly. */
export class LookupsByKey1760000000025 implements MigrationInterface {
  readonly name = "LookupsByKey1760000000025";

  /** No row is read or written. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [EXPLANATION, SLOT_OF_WALLET]) await runner.query(part);
  }

  /** The rules that refuse are never dropped. */
  async down(): Promise<void> {
    throw new Error("what refuses to pay twice is never dropped by a migration");
  }
}
