/**
 * What the exchange allows itself to pay: versions of its policy, what they decided, persons'
 * approvals, answers of screening, the kill switch, and the service fee. That nothing is paid without
 * its approvals, or against the kill switch, is refused by the database itself.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const VERSIONS = `
  CREATE TABLE policy_version (
    hash text PRIMARY KEY CHECK (hash ~ '^[0-9a-f]{64}$'),
    -- The text that the hash is of.
    body text NOT NULL CHECK (encode(sha256(convert_to(body, 'UTF8')), 'hex') = hash),
    first_seen timestamptz NOT NULL DEFAULT now()
  );
  CREATE TRIGGER policy_version_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON policy_version
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  -- Which one came into force when; the same may come again.
  CREATE TABLE policy_activation (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    policy_hash text NOT NULL REFERENCES policy_version (hash),
    at timestamptz NOT NULL DEFAULT now()
  );
  CREATE TRIGGER policy_activation_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON policy_activation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  -- Since when a destination is on a customer's list: the file cannot say it was there before.
  CREATE TABLE policy_listing (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id text NOT NULL CHECK (customer_id ~ '^[A-Za-z0-9_.:-]{1,64}$'),
    destination text NOT NULL CHECK (destination ~ '^0x[0-9a-f]{40}$'),
    listed boolean NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX policy_listing_latest ON policy_listing (customer_id, destination, id DESC);
  CREATE TRIGGER policy_listing_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON policy_listing
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const DECISIONS = `
  CREATE TABLE policy_decision (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    withdrawal_id text NOT NULL REFERENCES withdrawal (id),
    policy_hash text NOT NULL REFERENCES policy_version (hash),
    -- When the request was accepted, when the policy changed while it waited, when its nonce was
    -- taken.
    stage text NOT NULL CHECK (stage IN ('accept', 'change', 'slot')),
    outcome text NOT NULL CHECK (outcome IN ('pay', 'approve', 'reject', 'wait')),
    rules jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    -- What waits is decided about again and again; the same answer stands once.
    UNIQUE (withdrawal_id, stage, policy_hash, outcome)
  );
  CREATE TRIGGER policy_decision_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON policy_decision FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  CREATE TABLE screening_verdict (
    withdrawal_id text PRIMARY KEY REFERENCES withdrawal (id),
    verdict text NOT NULL CHECK (verdict IN ('allow', 'deny', 'review')),
    reference text NOT NULL CHECK (length(reference) <= 200),
    at timestamptz NOT NULL DEFAULT now()
  );
  CREATE TRIGGER screening_verdict_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON screening_verdict FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const WITHDRAWAL = `
  ALTER TABLE withdrawal DROP CONSTRAINT withdrawal_status_check;
  ALTER TABLE withdrawal ADD CONSTRAINT withdrawal_status_check
    CHECK (status IN ('pending_approval', 'accepted', 'slotted', 'signed', 'broadcast',
      'cancelling', 'included', 'frozen', 'settled', 'failed', 'rejected', 'cancelled'));
  ALTER TABLE withdrawal DROP CONSTRAINT withdrawal_cancel_cause_check;
  ALTER TABLE withdrawal ADD CONSTRAINT withdrawal_cancel_cause_check
    CHECK (cancel_cause IN ('request', 'deadline', 'refused', 'not-mined', 'policy'));
  ALTER TABLE withdrawal
    -- Held beside the amount; the exchange's when it settles.
    ADD COLUMN fee_units numeric(78,0) NOT NULL DEFAULT 0 CHECK (fee_units >= 0),
    -- The API key that asked; NULL for what was asked before keys were kept.
    ADD COLUMN requested_by text CHECK (length(requested_by) BETWEEN 1 AND 100),
    ADD COLUMN approvals_needed integer NOT NULL DEFAULT 0 CHECK (approvals_needed >= 0),
    -- Only signed ones count.
    ADD COLUMN approvals_signed boolean NOT NULL DEFAULT false,
    -- The policy that asks for them: approvals under another one do not count.
    ADD COLUMN approval_policy text REFERENCES policy_version (hash),
    ADD CONSTRAINT withdrawal_approvals_whole
      CHECK (approvals_needed = 0 OR approval_policy IS NOT NULL);
  -- What waits for persons may be too late, too.
  DROP INDEX withdrawal_deadline;
  CREATE INDEX withdrawal_deadline ON withdrawal (expires_at, position)
    WHERE expires_at IS NOT NULL
      AND status IN ('pending_approval', 'accepted', 'slotted', 'signed', 'broadcast');
  CREATE INDEX withdrawal_by_customer_time ON withdrawal (customer_id, created_at);
  CREATE INDEX withdrawal_by_destination_time ON withdrawal (destination, created_at);
  CREATE INDEX withdrawal_by_time ON withdrawal (created_at);
  CREATE INDEX nonce_slot_by_time ON nonce_slot (wallet, taken_at);

  CREATE FUNCTION refuse_other_charges() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'withdrawal % cannot change its terms', OLD.id
      USING ERRCODE = 'restrict_violation';
  END $$;
  CREATE TRIGGER withdrawal_charges_fixed BEFORE UPDATE ON withdrawal FOR EACH ROW
    WHEN ((OLD.fee_units, OLD.requested_by) IS DISTINCT FROM (NEW.fee_units, NEW.requested_by))
    EXECUTE FUNCTION refuse_other_charges();

  -- As for what was accepted: it may be a payment that only the chain remembered.
  CREATE TRIGGER withdrawal_pending_end_not_recovered BEFORE UPDATE OF status ON withdrawal
    FOR EACH ROW WHEN (OLD.status = 'pending_approval'
                       AND NEW.status IN ('failed', 'rejected', 'cancelled'))
    EXECUTE FUNCTION refuse_recovered_end();`;

const APPROVALS = `
  CREATE TABLE withdrawal_approval (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    withdrawal_id text NOT NULL REFERENCES withdrawal (id),
    key_id text NOT NULL CHECK (length(key_id) BETWEEN 1 AND 100),
    decision text NOT NULL CHECK (decision IN ('approve', 'reject')),
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
    policy_hash text NOT NULL REFERENCES policy_version (hash),
    -- What was decided about, with the policy and the decision.
    digest text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    public_key text CHECK (public_key ~ '^[0-9a-f]{64}$'),
    signature text CHECK (signature ~ '^[0-9a-f]{128}$'),
    at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (withdrawal_id, policy_hash, key_id),
    UNIQUE (withdrawal_id, policy_hash, public_key),
    CHECK ((public_key IS NULL) = (signature IS NULL))
  );
  CREATE TRIGGER withdrawal_approval_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON withdrawal_approval FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  -- Who asked never approves, whatever program writes the row.
  CREATE FUNCTION refuse_own_approval() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.decision = 'approve' AND EXISTS (
         SELECT 1 FROM withdrawal WHERE id = NEW.withdrawal_id AND requested_by = NEW.key_id) THEN
      RAISE EXCEPTION 'withdrawal % was asked for with this key', NEW.withdrawal_id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER withdrawal_approval_by_another BEFORE INSERT ON withdrawal_approval
    FOR EACH ROW EXECUTE FUNCTION refuse_own_approval();

  CREATE FUNCTION has_approvals(request text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT w.approvals_needed <= (
        SELECT count(*) FROM withdrawal_approval a
         WHERE a.withdrawal_id = w.id AND a.policy_hash = w.approval_policy
           AND a.decision = 'approve' AND (a.signature IS NOT NULL OR NOT w.approvals_signed))
      FROM withdrawal w WHERE w.id = request
  $$;

  -- The last word on approvals and on the kill switch, whichever way a nonce is asked for.
  CREATE FUNCTION refuse_unapproved_slots() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    stopped boolean := coalesce((SELECT level IN ('stop-sign', 'stop-broadcast')
                                   FROM kill_switch ORDER BY id DESC LIMIT 1), false);
    refused text;
  BEGIN
    SELECT s.withdrawal_id INTO refused FROM new_slot s
      JOIN withdrawal w ON w.id = s.withdrawal_id
     WHERE (stopped OR w.approvals_needed > 0 AND NOT has_approvals(w.id))
       -- A payment that the chain shows is only written down.
       AND NOT EXISTS (SELECT 1 FROM recovered_payment r
                        WHERE r.wallet = s.wallet AND r.nonce = s.nonce
                          AND r.withdrawal_id = s.withdrawal_id)
     LIMIT 1;
    IF refused IS NOT NULL THEN
      RAISE EXCEPTION 'withdrawal % %', refused,
        CASE WHEN stopped THEN 'is stopped by the kill switch' ELSE 'lacks approvals' END
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER nonce_slot_approved AFTER INSERT ON nonce_slot
    REFERENCING NEW TABLE AS new_slot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unapproved_slots();

  CREATE FUNCTION refuse_unapproved_step() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT has_approvals(NEW.id) THEN
      RAISE EXCEPTION 'withdrawal % lacks approvals', NEW.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER withdrawal_accepted_approved AFTER UPDATE OF status ON withdrawal
    FOR EACH ROW WHEN (OLD.status = 'pending_approval' AND NEW.status = 'accepted')
    EXECUTE FUNCTION refuse_unapproved_step();`;

const KILL_SWITCH = `
  CREATE TABLE kill_switch (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    level text NOT NULL CHECK (level IN ('none', 'stop-new', 'stop-sign', 'stop-broadcast')),
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 1000),
    set_by text NOT NULL CHECK (length(set_by) BETWEEN 1 AND 100),
    at timestamptz NOT NULL DEFAULT now()
  );
  CREATE TRIGGER kill_switch_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON kill_switch
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** Accounts of other versions stay: the rule that is there gets one more way. */
const FEES = `
  CREATE FUNCTION is_fee_account(code text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT code = 'revenue:withdrawal_fees'
  $$;
  DO $$
  DECLARE
    side text;
    rule text;
  BEGIN
    FOREACH side IN ARRAY ARRAY['debit', 'credit'] LOOP
      SELECT pg_get_expr(conbin, conrelid) INTO STRICT rule FROM pg_constraint
       WHERE conrelid = 'posting'::regclass AND conname = format('posting_%s_check', side);
      EXECUTE format(
        'ALTER TABLE posting DROP CONSTRAINT %I, ADD CONSTRAINT %I CHECK ((%s) OR is_fee_account(%I))',
        format('posting_%s_check', side), format('posting_%s_check', side), rule, side);
    END LOOP;
  END $$;`;

/** Policy, approvals, kill switch and fees; listed explicitly. */
export class Policy1760000000009 implements MigrationInterface {
  readonly name = "Policy1760000000009";

  /** Adds tables, columns and rules in the runner's transaction; no row loses anything. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [VERSIONS, DECISIONS, WITHDRAWAL, KILL_SWITCH, APPROVALS, FEES]) {
      await runner.query(part);
    }
  }

  /** Refused: the tables say why what was paid was paid. */
  async down(): Promise<void> {
    throw new Error("decisions about payments are never dropped by a migration");
  }
}
