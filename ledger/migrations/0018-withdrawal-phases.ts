/**
 * Less work for the same rules. Steps of withdrawals that write no index: PostgreSQL keeps a new
 * version of a row within its page as long as no indexed column changes. The state changes with every
 * step, so what is indexed is the phase that it belongs to, which changes twice on the usual way. And
 * rules about slots that are asked once for all slots of a commit.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const PHASES = `
  ALTER TABLE withdrawal ADD COLUMN phase text NOT NULL GENERATED ALWAYS AS (
    CASE WHEN status IN ('pending_approval', 'accepted') THEN 'waiting'
         WHEN status = 'settled' THEN 'paid'
         WHEN status IN ('failed', 'rejected', 'cancelled') THEN 'unpaid'
         ELSE 'open' END) STORED;
  DROP INDEX withdrawal_open;
  DROP INDEX withdrawal_unpaid;
  DROP INDEX withdrawal_waiting;
  DROP INDEX withdrawal_deadline;
  -- What is paid, which is nearly all, is found by position.
  CREATE INDEX withdrawal_open ON withdrawal (position) WHERE phase IN ('waiting', 'open');
  CREATE INDEX withdrawal_unpaid ON withdrawal (position) WHERE phase = 'unpaid';
  CREATE INDEX withdrawal_waiting ON withdrawal (next_try_at, position) WHERE phase = 'waiting';
  CREATE INDEX withdrawal_deadline ON withdrawal (expires_at, position)
    WHERE expires_at IS NOT NULL AND phase IN ('waiting', 'open');
  -- Room for the versions of one journey.
  ALTER TABLE withdrawal SET (fillfactor = 60);
  ALTER TABLE nonce_slot SET (fillfactor = 70);`;

/** The rules about slots that were asked of each row, asked of all rows of a statement at once. */
const SLOTS = `
  DROP TRIGGER nonce_slot_not_recovered ON nonce_slot;
  DROP TRIGGER nonce_slot_not_paused ON nonce_slot;
  DROP FUNCTION refuse_recovered_payment();
  DROP FUNCTION refuse_paused_slot();

  -- The last word on paying twice after a recovery, whichever way a slot is asked for.
  CREATE FUNCTION refuse_recovered_payments() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    request text;
    paid text;
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM recovered_payment) THEN RETURN NULL; END IF;
    SELECT s.withdrawal_id, coalesce(r.tx_hash, undecided.tx_hash) INTO request, paid
      FROM new_slot s
      LEFT JOIN recovered_payment r ON r.wallet = s.wallet AND r.nonce = s.nonce
      LEFT JOIN LATERAL undecided_payment_of(s.withdrawal_id) AS undecided ON true
           -- A slot that is the payment itself: others may equal it.
     WHERE r.withdrawal_id IS DISTINCT FROM s.withdrawal_id
       AND (r.tx_hash IS NOT NULL OR undecided.tx_hash IS NOT NULL)
     LIMIT 1;
    IF request IS NOT NULL THEN
      RAISE EXCEPTION 'withdrawal % may be the recovered payment %: see causeway ledger open',
        request, paid USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER nonce_slot_not_recovered AFTER INSERT ON nonce_slot
    REFERENCING NEW TABLE AS new_slot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_recovered_payments();

  CREATE FUNCTION refuse_paused_slots() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    paused_asset text;
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM token_state WHERE paused) THEN RETURN NULL; END IF;
    -- What is mined already reserves nothing and is booked all the same.
    SELECT w.asset INTO paused_asset
      FROM new_slot s
      JOIN withdrawal w ON w.id = s.withdrawal_id
      JOIN token_state t ON t.asset = w.asset AND t.paused
     WHERE s.reserved_atoken > 0 LIMIT 1;
    IF paused_asset IS NOT NULL THEN
      RAISE EXCEPTION 'token % stands still: see causeway tokens state', paused_asset
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER nonce_slot_not_paused AFTER INSERT ON nonce_slot
    REFERENCING NEW TABLE AS new_slot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_paused_slots();`;

/** What is indexed of a withdrawal's state; listed explicitly. */
export class WithdrawalPhases1760000000018 implements MigrationInterface {
  readonly name = "WithdrawalPhases1760000000018";

  async up(runner: QueryRunner): Promise<void> {
    for (const part of [PHASES, SLOTS]) await runner.query(part);
  }

  /** The rules that refuse slots are never dropped. */
  async down(): Promise<void> {
    throw new Error("what refuses to pay twice is never dropped by a migration");
  }
}
