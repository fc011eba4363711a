/**
 * Ways out of a payout: cancelling transfers on the same nonce, deadlines, budgets of fees, failed
 * payouts by customer, and foreign transactions that an operator has acknowledged. The database
 * itself refuses to give a hold back while a transaction of the withdrawal could still pay.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const WITHDRAWAL = `
  ALTER TABLE withdrawal DROP CONSTRAINT withdrawal_status_check;
  ALTER TABLE withdrawal ADD CONSTRAINT withdrawal_status_check
    CHECK (status IN ('accepted', 'slotted', 'signed', 'broadcast', 'cancelling', 'included',
      'frozen', 'settled', 'failed', 'rejected', 'cancelled'));
  ALTER TABLE withdrawal
    ADD COLUMN expires_at timestamptz,
    -- Why its nonce is to be used up by a transfer to the wallet itself; never changes again.
    ADD COLUMN cancel_cause text
      CHECK (cancel_cause IN ('request', 'deadline', 'refused', 'not-mined')),
    ADD COLUMN cancel_reason text,
    ADD CONSTRAINT withdrawal_cancel_whole CHECK ((cancel_cause IS NULL) = (cancel_reason IS NULL)),
    ADD CONSTRAINT withdrawal_cancelling_has_cause
      CHECK (status <> 'cancelling' OR cancel_cause IS NOT NULL);
  CREATE INDEX withdrawal_deadline ON withdrawal (wallet, expires_at)
    WHERE expires_at IS NOT NULL AND status IN ('accepted', 'slotted', 'signed', 'broadcast');

  CREATE OR REPLACE FUNCTION withdrawal_terms_are_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.status IN ('settled', 'failed', 'rejected', 'cancelled') THEN
      RAISE EXCEPTION 'withdrawal % has ended', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF (OLD.id, OLD.position, OLD.idempotency_key, OLD.request_hash, OLD.customer_id, OLD.asset,
        OLD.wallet, OLD.destination, OLD.amount_atoken, OLD.expires_at)
       IS DISTINCT FROM
       (NEW.id, NEW.position, NEW.idempotency_key, NEW.request_hash, NEW.customer_id, NEW.asset,
        NEW.wallet, NEW.destination, NEW.amount_atoken, NEW.expires_at)
       OR OLD.cancel_cause IS NOT NULL
          AND (OLD.cancel_cause, OLD.cancel_reason)
              IS DISTINCT FROM (NEW.cancel_cause, NEW.cancel_reason) THEN
      RAISE EXCEPTION 'withdrawal % cannot change its terms', OLD.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;`;

const SLOTS = `
  ALTER TABLE nonce_slot DROP CONSTRAINT nonce_slot_outcome_check;
  ALTER TABLE nonce_slot ADD CONSTRAINT nonce_slot_outcome_check
    CHECK (outcome IN ('paid', 'reverted', 'cancelled', 'foreign'));
  ALTER TABLE nonce_slot
    -- The dearest of its attempts: gas limit x price.
    ADD COLUMN fee_reserved_atoken numeric(80,0) NOT NULL DEFAULT 0
      CHECK (fee_reserved_atoken >= 0),
    -- The destination runs code: such slots share a budget of gas.
    ADD COLUMN enters_code boolean NOT NULL DEFAULT false,
    -- It has more than one attempt: the pool may hold an older one than the latest.
    ADD COLUMN replaced boolean NOT NULL DEFAULT false;
  UPDATE nonce_slot s SET fee_reserved_atoken = greatest(0, s.reserved_atoken - w.amount_atoken)
    FROM withdrawal w WHERE w.id = s.withdrawal_id AND s.outcome IS NULL;
  UPDATE nonce_slot s SET replaced = true
   WHERE s.outcome IS NULL
     AND EXISTS (SELECT 1 FROM withdrawal_attempt a WHERE a.slot_id = s.id AND a.n > 0);
  CREATE INDEX nonce_slot_replaced ON nonce_slot (wallet, nonce) WHERE outcome IS NULL AND replaced;

  -- 'cancel' is a transfer of nothing to the wallet itself; mined, it proves that nothing was paid.
  ALTER TABLE withdrawal_attempt ADD COLUMN kind text NOT NULL DEFAULT 'payment'
    CHECK (kind IN ('payment', 'cancel'));

  ALTER TABLE hot_wallet
    -- Fees of one UTC day, for the day's budget.
    ADD COLUMN fee_day date NOT NULL DEFAULT '1970-01-01',
    ADD COLUMN fee_day_atoken numeric(80,0) NOT NULL DEFAULT 0 CHECK (fee_day_atoken >= 0);`;

/** Deferred: state, slot and postings of an ending are one commit, in an order of their own. */
const PROOF = `
  CREATE FUNCTION withdrawal_end_is_proven() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.status = 'settled' THEN
      IF NOT EXISTS (SELECT 1 FROM nonce_slot
                      WHERE withdrawal_id = NEW.id AND outcome = 'paid') THEN
        RAISE EXCEPTION 'withdrawal % settles without a payment', NEW.id
          USING ERRCODE = 'restrict_violation';
      END IF;
    ELSIF EXISTS (SELECT 1 FROM nonce_slot
                   WHERE withdrawal_id = NEW.id AND (outcome IS NULL OR outcome = 'paid')) THEN
      RAISE EXCEPTION 'withdrawal % may still be paid, or is', NEW.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER withdrawal_end_proven AFTER UPDATE OF status ON withdrawal
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.status IN ('settled', 'failed', 'rejected', 'cancelled'))
    EXECUTE FUNCTION withdrawal_end_is_proven();`;

const FAILURES = `
  CREATE TABLE payout_failure (
    withdrawal_id text PRIMARY KEY REFERENCES withdrawal (id),
    customer_id text NOT NULL REFERENCES customer (id),
    at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX payout_failure_customer ON payout_failure (customer_id, at);
  CREATE TRIGGER payout_failure_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON payout_failure
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  CREATE OR REPLACE FUNCTION is_account(code text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT
  AS $$
    SELECT code ~ ('^(asset:(hot_wallet|deposit_addresses|break)|liability:suspense'
      '|equity:opening_capital|expense:network_fee|revenue:failed_payouts'
      '|liability:(customer|held):[A-Za-z0-9_.:-]{1,64})$')
  $$;`;

const ACKNOWLEDGED = `
  CREATE TABLE foreign_transaction_acknowledged (
    wallet text NOT NULL CHECK (wallet ~ '^0x[0-9a-f]{40}$'),
    tx_hash text NOT NULL CHECK (tx_hash ~ '^0x[0-9a-f]{64}$'),
    acknowledged_by text NOT NULL CHECK (length(acknowledged_by) BETWEEN 1 AND 200),
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 1000),
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (wallet, tx_hash)
  );
  CREATE TRIGGER foreign_transaction_acknowledged_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON foreign_transaction_acknowledged
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** A worker of the format before would take a mined cancelling transfer for a payment. */
const FORMAT = `UPDATE meta SET value = '2' WHERE key = 'format_version' AND value = '1'`;

/** Adds what lets every withdrawal end; listed explicitly after the withdrawal tables. */
export class PayoutExits1760000000003 implements MigrationInterface {
  readonly name = "PayoutExits1760000000003";

  /** Adds columns, tables and rules in the runner's transaction; no row loses anything. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [WITHDRAWAL, SLOTS, PROOF, FAILURES, ACKNOWLEDGED, FORMAT]) {
      await runner.query(part);
    }
  }

  /** Refused: the tables hold what was signed. */
  async down(): Promise<void> {
    throw new Error("withdrawal tables are never dropped: they hold what was signed");
  }
}
