/**
 * What a ledger knows about itself and its losses: an identity made with the database, the epoch of
 * its events, what homes remember of it, payments that only the chain remembered, and operators'
 * decisions about them.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const IDENTITY_AND_EPOCH = `
  INSERT INTO meta (key, value) VALUES ('ledger_id', gen_random_uuid()::text)
    ON CONFLICT (key) DO NOTHING;

  ALTER TABLE event_counter ADD COLUMN epoch integer NOT NULL DEFAULT 1 CHECK (epoch > 0);
  ALTER TABLE event ADD COLUMN epoch integer NOT NULL DEFAULT 1 CHECK (epoch > 0);
  -- A program that knows no epochs must not write into one.
  ALTER TABLE event ALTER COLUMN epoch DROP DEFAULT;
  CREATE FUNCTION refuse_counter_step_back() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.seq < OLD.seq OR NEW.epoch < OLD.epoch THEN
      RAISE EXCEPTION 'event numbers never go back' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER event_counter_forward BEFORE UPDATE ON event_counter
    FOR EACH ROW EXECUTE FUNCTION refuse_counter_step_back();

  -- Positions of lists were told too, and lost: those of a new epoch lie behind all of them. Run as
  -- the owner, because services may only draw from sequences; it leads nowhere but forward.
  CREATE FUNCTION skip_told_positions() RETURNS void LANGUAGE sql SECURITY DEFINER
    SET search_path = public, pg_temp AS $$
    SELECT setval('deposit_seq_seq', nextval('deposit_seq_seq') + 1000000000);
    SELECT setval('withdrawal_position', nextval('withdrawal_position') + 1000000000);
  $$;

  -- A recovery and an incident of the chain may both be open; each has its own way to be closed.
  DROP INDEX incident_open;
  CREATE UNIQUE INDEX incident_open ON incident ((kind = 'RECOVERY')) WHERE resolved_at IS NULL;

  -- What homes remembered when they found this ledger behind, or found it to be another one.
  CREATE TABLE remembered_ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ledger_id text NOT NULL,
    epoch integer NOT NULL CHECK (epoch > 0),
    next_address_index bigint NOT NULL CHECK (next_address_index >= 0),
    event_seq bigint NOT NULL CHECK (event_seq >= 0),
    reported_by text NOT NULL,
    reported_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (ledger_id, epoch, next_address_index, event_seq)
  );
  CREATE TRIGGER remembered_ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON remembered_ledger FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const ADDRESSES = `
  CREATE FUNCTION deposit_address_is_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF (NEW.index, NEW.address, NEW.customer_id, NEW.from_height, NEW.registered_at)
       IS DISTINCT FROM
       (OLD.index, OLD.address, OLD.customer_id, OLD.from_height, OLD.registered_at)
       OR (OLD.backfilled AND NOT NEW.backfilled) THEN
      RAISE EXCEPTION 'deposit address % is what it was when it was given out', OLD.address
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER deposit_address_fixed BEFORE UPDATE ON deposit_address
    FOR EACH ROW EXECUTE FUNCTION deposit_address_is_fixed();
  CREATE TRIGGER deposit_address_keep BEFORE DELETE OR TRUNCATE ON deposit_address
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** The customer of addresses whose customer only a person can name. No coins are ever owed to it. */
const UNASSIGNED = `
  INSERT INTO customer (id) VALUES ('causeway:unassigned') ON CONFLICT (id) DO NOTHING;

  -- Who an address of a recovered ledger belongs to: said once, by a person.
  CREATE TABLE address_assignment (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address text NOT NULL UNIQUE REFERENCES deposit_address (address),
    customer_id text NOT NULL REFERENCES customer (id)
      CHECK (customer_id <> 'causeway:unassigned'),
    assigned_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE FUNCTION assign_only_unassigned() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM deposit_address
                    WHERE address = NEW.address AND customer_id = 'causeway:unassigned') THEN
      RAISE EXCEPTION 'address % has its customer', NEW.address USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER address_assignment_once BEFORE INSERT ON address_assignment
    FOR EACH ROW EXECUTE FUNCTION assign_only_unassigned();
  CREATE TRIGGER address_assignment_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON address_assignment FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const RECOVERED_PAYMENTS = `
  -- Accounts that only operators' decisions and recoveries touch. A function of its own, so that
  -- other accounts can be added without this one.
  CREATE FUNCTION is_decision_account(code text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT code IN ('asset:recovered_payments', 'asset:cold_storage', 'equity:adjustment',
                    'expense:write_off')
  $$;
  ALTER TABLE posting
    DROP CONSTRAINT posting_debit_check,
    DROP CONSTRAINT posting_credit_check,
    ADD CONSTRAINT posting_debit_check CHECK (is_account(debit) OR is_decision_account(debit)),
    ADD CONSTRAINT posting_credit_check CHECK (is_account(credit) OR is_decision_account(credit));

  CREATE TABLE recovered_payment (
    tx_hash text PRIMARY KEY CHECK (tx_hash ~ '^0x[0-9a-f]{64}$'),
    wallet text NOT NULL CHECK (wallet ~ '^0x[0-9a-f]{40}$'),
    nonce numeric(20,0) NOT NULL CHECK (nonce >= 0),
    height bigint NOT NULL CHECK (height >= 0),
    block_hash text NOT NULL CHECK (block_hash ~ '^0x[0-9a-f]{64}$'),
    destination text CHECK (destination ~ '^0x[0-9a-f]{40}$'),
    amount_atoken numeric(78,0) NOT NULL CHECK (amount_atoken >= 0),
    gas_used numeric(20,0) NOT NULL CHECK (gas_used > 0),
    gas_price_atoken numeric(78,0) NOT NULL CHECK (gas_price_atoken >= 0),
    epoch integer NOT NULL CHECK (epoch > 0),
    -- 'booked-before': a person had accepted it as an outflow before it was recovered.
    decision text
      CHECK (decision IN ('linked', 'written-off', 'nothing-paid', 'booked-before')),
    withdrawal_id text UNIQUE REFERENCES withdrawal (id),
    UNIQUE (wallet, nonce),
    CHECK ((decision = 'linked') = (withdrawal_id IS NOT NULL))
  );
  CREATE INDEX recovered_payment_open ON recovered_payment (destination, amount_atoken)
    WHERE decision IS NULL;
  CREATE FUNCTION recovered_payment_is_decided_once() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.decision IS NOT NULL
       OR (OLD.tx_hash, OLD.wallet, OLD.nonce, OLD.height, OLD.block_hash, OLD.destination,
           OLD.amount_atoken, OLD.gas_used, OLD.gas_price_atoken, OLD.epoch)
          IS DISTINCT FROM
          (NEW.tx_hash, NEW.wallet, NEW.nonce, NEW.height, NEW.block_hash, NEW.destination,
           NEW.amount_atoken, NEW.gas_used, NEW.gas_price_atoken, NEW.epoch) THEN
      RAISE EXCEPTION 'recovered payment % is decided once', OLD.tx_hash
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER recovered_payment_once BEFORE UPDATE ON recovered_payment
    FOR EACH ROW EXECUTE FUNCTION recovered_payment_is_decided_once();
  CREATE TRIGGER recovered_payment_keep BEFORE DELETE OR TRUNCATE ON recovered_payment
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  -- A person's word that a request is not one of the recovered payments and is to be paid.
  CREATE TABLE withdrawal_clearance (
    withdrawal_id text NOT NULL REFERENCES withdrawal (id),
    -- Payments that a later recovery finds were not known to that person.
    epoch integer NOT NULL CHECK (epoch > 0),
    cleared_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (withdrawal_id, epoch)
  );
  CREATE TRIGGER withdrawal_clearance_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON withdrawal_clearance FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  -- What explains a transaction that took coins from one of our addresses; NULL when nothing does.
  -- An attempt explains it while its slot is open, or as the one that the slot was booked by: a
  -- payment that is mined where its cancellation was booked is nothing that anybody asked for.
  CREATE FUNCTION explanation_of(payer text, mined text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
      WHEN EXISTS (SELECT 1 FROM recovered_payment r WHERE r.tx_hash = mined AND r.wallet = payer)
        THEN 'recovered'
      WHEN EXISTS (SELECT 1 FROM withdrawal_attempt a JOIN nonce_slot s ON s.id = a.slot_id
                    WHERE a.hash = mined AND s.wallet = payer
                      AND (s.outcome IS NULL OR s.mined_hash = mined))
        THEN 'withdrawal'
      WHEN EXISTS (SELECT 1 FROM journal_entry e
                    WHERE e.idem_key = 'outflow:' || mined || ':' || payer)
        THEN 'outflow'
    END
  $$;

  -- The lowest recovered payment that may have paid a request: nobody has decided about it, and no
  -- person who knew it has cleared the request.
  CREATE FUNCTION undecided_payment_of(request text) RETURNS TABLE (tx_hash text, height bigint)
    LANGUAGE sql STABLE AS $$
    SELECT r.tx_hash, r.height FROM withdrawal w
      JOIN recovered_payment r
        ON r.destination = w.destination AND r.amount_atoken = w.amount_atoken
     WHERE w.id = request AND r.decision IS NULL
       AND NOT EXISTS (SELECT 1 FROM withdrawal_clearance c
                        WHERE c.withdrawal_id = w.id AND c.epoch >= r.epoch)
     ORDER BY r.nonce LIMIT 1
  $$;

  -- The last word on paying twice after a recovery, whichever way a slot is asked for.
  CREATE FUNCTION refuse_recovered_payment() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    paid text;
  BEGIN
    -- This slot is the payment itself: others may equal it.
    IF EXISTS (SELECT 1 FROM recovered_payment
                WHERE wallet = NEW.wallet AND nonce = NEW.nonce
                  AND withdrawal_id = NEW.withdrawal_id) THEN
      RETURN NEW;
    END IF;
    SELECT tx_hash INTO paid FROM recovered_payment
     WHERE wallet = NEW.wallet AND nonce = NEW.nonce
       AND withdrawal_id IS DISTINCT FROM NEW.withdrawal_id;
    IF paid IS NULL THEN
      SELECT tx_hash INTO paid FROM undecided_payment_of(NEW.withdrawal_id);
    END IF;
    IF paid IS NOT NULL THEN
      RAISE EXCEPTION 'withdrawal % may be the recovered payment %: see causeway ledger open',
        NEW.withdrawal_id, paid USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER nonce_slot_not_recovered BEFORE INSERT ON nonce_slot
    FOR EACH ROW EXECUTE FUNCTION refuse_recovered_payment();

  -- The same about a hold that would go back without a slot that proves what became of it.
  CREATE FUNCTION refuse_recovered_end() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    paid text;
  BEGIN
    SELECT tx_hash INTO paid FROM undecided_payment_of(NEW.id);
    IF paid IS NOT NULL THEN
      RAISE EXCEPTION 'withdrawal % may be the recovered payment %: see causeway ledger open',
        NEW.id, paid USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER withdrawal_end_not_recovered BEFORE UPDATE OF status ON withdrawal
    FOR EACH ROW WHEN (OLD.status IN ('accepted', 'frozen')
                       AND NEW.status IN ('failed', 'rejected', 'cancelled'))
    EXECUTE FUNCTION refuse_recovered_end();`;

const DECISIONS = `
  -- What operators decided, with their reasons. A refused proposal frees its key.
  CREATE TABLE operator_decision (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    -- Natural key of what is decided: the same thing is decided once.
    key text NOT NULL CHECK (length(key) BETWEEN 1 AND 200),
    terms jsonb NOT NULL,
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 1000),
    needs_second boolean NOT NULL,
    status text NOT NULL CHECK (status IN ('proposed', 'done', 'refused')),
    proposed_by text NOT NULL CHECK (length(proposed_by) BETWEEN 1 AND 100),
    proposed_at timestamptz NOT NULL DEFAULT now(),
    decided_by text CHECK (length(decided_by) BETWEEN 1 AND 100),
    decided_at timestamptz,
    CHECK ((status = 'proposed') = (decided_by IS NULL)),
    CHECK ((decided_by IS NULL) = (decided_at IS NULL)),
    CONSTRAINT operator_decision_two_persons
      CHECK (NOT needs_second OR status <> 'done' OR decided_by <> proposed_by)
  );
  CREATE UNIQUE INDEX operator_decision_once ON operator_decision (kind, key)
    WHERE status <> 'refused';
  CREATE FUNCTION operator_decision_is_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.status <> 'proposed'
       OR (OLD.id, OLD.kind, OLD.key, OLD.terms, OLD.reason, OLD.needs_second, OLD.proposed_by,
           OLD.proposed_at)
          IS DISTINCT FROM
          (NEW.id, NEW.kind, NEW.key, NEW.terms, NEW.reason, NEW.needs_second, NEW.proposed_by,
           NEW.proposed_at) THEN
      RAISE EXCEPTION 'decision % stands', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER operator_decision_fixed BEFORE UPDATE ON operator_decision
    FOR EACH ROW EXECUTE FUNCTION operator_decision_is_fixed();
  CREATE TRIGGER operator_decision_keep BEFORE DELETE OR TRUNCATE ON operator_decision
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const REWINDS = `
  -- The chain came back without blocks that were booked: a person lets the watcher go back, with the
  -- evidence, and what vanished is reversed by entries of its own.
  CREATE TABLE chain_rewind (
    id integer PRIMARY KEY CHECK (id > 0),
    from_height bigint NOT NULL,
    from_hash text NOT NULL CHECK (from_hash ~ '^0x[0-9a-f]{64}$'),
    to_height bigint NOT NULL CHECK (to_height >= -1 AND to_height < from_height),
    to_hash text CHECK (to_hash ~ '^0x[0-9a-f]{64}$'),
    evidence jsonb NOT NULL,
    operator text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    CHECK ((to_height = -1) = (to_hash IS NULL))
  );
  CREATE TRIGGER chain_rewind_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON chain_rewind
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  ALTER TABLE watch_cursor ADD COLUMN rewinds integer NOT NULL DEFAULT 0;
  CREATE OR REPLACE FUNCTION refuse_cursor_step_back() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.rewinds = OLD.rewinds + 1 AND NEW.next_address_index = OLD.next_address_index
       AND EXISTS (SELECT 1 FROM chain_rewind
                    WHERE id = NEW.rewinds AND from_height = OLD.height
                      AND from_hash = OLD.block_hash AND to_height = NEW.height
                      AND to_hash IS NOT DISTINCT FROM NEW.block_hash) THEN
      RETURN NEW;
    END IF;
    IF NEW.height < OLD.height OR NEW.next_address_index < OLD.next_address_index
       OR NEW.rewinds <> OLD.rewinds THEN
      RAISE EXCEPTION 'the cursor never goes back' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;

  -- The same place of a chain that came back may hold another deposit.
  ALTER TABLE deposit
    ADD COLUMN rewind integer NOT NULL DEFAULT 0 CHECK (rewind >= 0),
    DROP CONSTRAINT deposit_height_tx_index_op_index_key,
    ADD CONSTRAINT deposit_place UNIQUE (height, tx_index, op_index, rewind),
    DROP CONSTRAINT deposit_status_check,
    ADD CONSTRAINT deposit_status_check
      CHECK (status IN ('detected', 'credited', 'held', 'suspense', 'reversed'));
  CREATE OR REPLACE FUNCTION guard_deposit() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT (OLD.status = 'detected' AND NEW.status IN ('credited', 'held', 'suspense')
         OR OLD.status = 'held' AND NEW.status IN ('credited', 'suspense')
         OR OLD.status = 'suspense' AND NEW.status = 'credited'
         OR OLD.status <> 'reversed' AND NEW.status = 'reversed')
       OR (NEW.seq, NEW.id, NEW.address, NEW.asset, NEW.amount_atoken, NEW.height,
           NEW.block_hash, NEW.tx_hash, NEW.tx_index, NEW.op_index, NEW.seen_at, NEW.rewind)
          IS DISTINCT FROM
          (OLD.seq, OLD.id, OLD.address, OLD.asset, OLD.amount_atoken, OLD.height,
           OLD.block_hash, OLD.tx_hash, OLD.tx_index, OLD.op_index, OLD.seen_at, OLD.rewind)
       OR NEW.customer_id <> OLD.customer_id
          AND NOT (OLD.status = 'suspense' AND NEW.status = 'credited') THEN
      RAISE EXCEPTION 'deposit % may only move on from %', OLD.id, OLD.status
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;`;

/** Identity, epoch and recovery of the ledger. */
export class Recovery1760000000004 implements MigrationInterface {
  readonly name = "Recovery1760000000004";

  async up(runner: QueryRunner): Promise<void> {
    const parts = [
      IDENTITY_AND_EPOCH,
      ADDRESSES,
      UNASSIGNED,
      RECOVERED_PAYMENTS,
      DECISIONS,
      REWINDS,
    ];
    for (const part of parts) await runner.query(part);
  }

  /** A ledger never forgets that it was recovered. */
  async down(): Promise<void> {
    throw new Error("what a recovery proved is never dropped by a migration");
  }
}
