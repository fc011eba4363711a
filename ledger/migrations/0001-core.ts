/**
 * First tables of the ledger: identity, customers, the double-entry journal, balances, events,
 * deposit addresses, deposits, the watcher's cursor and incidents. The rules about money are in
 * SQL, so that no program, and no person with a prompt, can break them by mistake.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const IDENTITY_AND_CUSTOMERS = `
  CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL);

  CREATE TABLE customer (
    id text PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9_.:-]{1,64}$'),
    first_seen timestamptz NOT NULL DEFAULT now()
  );

  CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'table % is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
  END $$;`;

const JOURNAL = `
  CREATE TABLE journal_entry (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    idem_key text NOT NULL UNIQUE,
    effective_height bigint CHECK (effective_height >= 0),
    memo text,
    posted_at timestamptz NOT NULL DEFAULT now()
  );

  CREATE FUNCTION is_account(code text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT code ~ ('^(asset:(hot_wallet|deposit_addresses|break)|liability:suspense'
      '|equity:opening_capital|expense:network_fee'
      '|liability:(customer|held):[A-Za-z0-9_.:-]{1,64})$')
  $$;

  CREATE TABLE posting (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    journal_id bigint NOT NULL REFERENCES journal_entry (id),
    place integer NOT NULL CHECK (place >= 0),
    asset text NOT NULL CHECK (asset ~ '^[A-Za-z0-9_.:-]{1,64}$'),
    debit text NOT NULL CHECK (is_account(debit)),
    credit text NOT NULL CHECK (is_account(credit)),
    amount_atoken numeric(78, 0) NOT NULL CHECK (amount_atoken > 0),
    UNIQUE (journal_id, place),
    CHECK (debit <> credit)
  );
  CREATE INDEX posting_debit ON posting (debit);
  CREATE INDEX posting_credit ON posting (credit);

  CREATE TRIGGER journal_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON journal_entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE TRIGGER posting_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON posting
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** A customer's row follows the postings in the same statement; CHECK is the last word on money. */
const BALANCES = `
  CREATE TABLE customer_balance (
    customer_id text NOT NULL REFERENCES customer (id),
    asset text NOT NULL,
    available_atoken numeric(78, 0) NOT NULL DEFAULT 0,
    held_atoken numeric(78, 0) NOT NULL DEFAULT 0,
    PRIMARY KEY (customer_id, asset),
    CONSTRAINT customer_balance_available_not_negative CHECK (available_atoken >= 0),
    CONSTRAINT customer_balance_held_not_negative CHECK (held_atoken >= 0)
  );

  CREATE FUNCTION move_customer_balances() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    change record;
  BEGIN
    -- In id order, so that two writers of the same customers wait instead of deadlocking.
    FOR change IN
      SELECT parts[2] AS customer_id, asset,
             coalesce(sum(amount) FILTER (WHERE parts[1] = 'customer'), 0) AS available,
             coalesce(sum(amount) FILTER (WHERE parts[1] = 'held'), 0) AS held
        FROM (
          SELECT regexp_match(account, '^liability:(customer|held):(.*)$') AS parts, asset, amount
            FROM (
              SELECT credit AS account, asset, amount_atoken AS amount FROM new_posting
              UNION ALL
              SELECT debit, asset, -amount_atoken FROM new_posting
            ) AS side
        ) AS leg
       WHERE parts IS NOT NULL
       GROUP BY parts[2], asset
       ORDER BY parts[2], asset
    LOOP
      FOR attempt IN 1..2 LOOP
        UPDATE customer_balance
           SET available_atoken = available_atoken + change.available,
               held_atoken = held_atoken + change.held
         WHERE customer_id = change.customer_id AND asset = change.asset;
        EXIT WHEN FOUND;
        INSERT INTO customer_balance (customer_id, asset)
        VALUES (change.customer_id, change.asset) ON CONFLICT DO NOTHING;
      END LOOP;
    END LOOP;
    RETURN NULL;
  END $$;

  CREATE TRIGGER posting_moves_balances AFTER INSERT ON posting
    REFERENCING NEW TABLE AS new_posting
    FOR EACH STATEMENT EXECUTE FUNCTION move_customer_balances();

  CREATE FUNCTION refuse_direct_balance() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'customer_balance follows postings and is never written directly'
      USING ERRCODE = 'restrict_violation';
  END $$;
  CREATE TRIGGER customer_balance_guard BEFORE INSERT OR UPDATE OR DELETE ON customer_balance
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_direct_balance();
  CREATE TRIGGER customer_balance_keep BEFORE TRUNCATE ON customer_balance
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const EVENTS = `
  CREATE TABLE event (
    seq bigint PRIMARY KEY CHECK (seq > 0),
    type text NOT NULL,
    data jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  CREATE TRIGGER event_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON event
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  CREATE TABLE event_counter (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    seq bigint NOT NULL CHECK (seq >= 0)
  );
  INSERT INTO event_counter (seq) VALUES (0);
  CREATE TRIGGER event_counter_keep BEFORE DELETE OR TRUNCATE ON event_counter
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const DEPOSITS = `
  CREATE TABLE watch_cursor (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    height bigint NOT NULL CHECK (height >= -1),
    block_hash text CHECK (block_hash ~ '^0x[0-9a-f]{64}$'),
    next_address_index bigint NOT NULL CHECK (next_address_index >= 0),
    CHECK ((height = -1) = (block_hash IS NULL))
  );
  INSERT INTO watch_cursor (height, next_address_index) VALUES (-1, 0);
  CREATE FUNCTION refuse_cursor_step_back() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.height < OLD.height OR NEW.next_address_index < OLD.next_address_index THEN
      RAISE EXCEPTION 'the cursor never goes back' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER watch_cursor_forward BEFORE UPDATE ON watch_cursor
    FOR EACH ROW EXECUTE FUNCTION refuse_cursor_step_back();
  CREATE TRIGGER watch_cursor_keep BEFORE DELETE OR TRUNCATE ON watch_cursor
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  CREATE TABLE deposit_address (
    index bigint PRIMARY KEY CHECK (index BETWEEN 0 AND 2147483647),
    address text NOT NULL UNIQUE CHECK (address ~ '^0x[0-9a-f]{40}$'),
    customer_id text NOT NULL REFERENCES customer (id),
    from_height bigint NOT NULL CHECK (from_height >= 0),
    backfilled boolean NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX deposit_address_waiting ON deposit_address (index) WHERE NOT backfilled;

  CREATE TABLE deposit (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    address text NOT NULL REFERENCES deposit_address (address),
    customer_id text NOT NULL REFERENCES customer (id),
    asset text NOT NULL,
    amount_atoken numeric(78, 0) NOT NULL CHECK (amount_atoken > 0),
    status text NOT NULL CHECK (status IN ('detected', 'credited', 'held', 'suspense')),
    height bigint NOT NULL CHECK (height >= 0),
    block_hash text NOT NULL CHECK (block_hash ~ '^0x[0-9a-f]{64}$'),
    tx_hash text NOT NULL CHECK (tx_hash ~ '^0x[0-9a-f]{64}$'),
    tx_index integer NOT NULL CHECK (tx_index >= 0),
    op_index integer NOT NULL CHECK (op_index >= 0),
    seen_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (height, tx_index, op_index)
  );
  CREATE INDEX deposit_by_address ON deposit (address, seq);
  CREATE INDEX deposit_by_customer ON deposit (customer_id, seq);
  CREATE INDEX deposit_detected ON deposit (height) WHERE status = 'detected';
  CREATE INDEX deposit_unusual ON deposit (status, seq) WHERE status IN ('held', 'suspense');

  CREATE FUNCTION guard_deposit() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT (OLD.status = 'detected' AND NEW.status IN ('credited', 'held', 'suspense')
         OR OLD.status = 'held' AND NEW.status IN ('credited', 'suspense'))
       OR (NEW.seq, NEW.id, NEW.address, NEW.customer_id, NEW.asset, NEW.amount_atoken, NEW.height,
           NEW.block_hash, NEW.tx_hash, NEW.tx_index, NEW.op_index, NEW.seen_at)
          IS DISTINCT FROM
          (OLD.seq, OLD.id, OLD.address, OLD.customer_id, OLD.asset, OLD.amount_atoken, OLD.height,
           OLD.block_hash, OLD.tx_hash, OLD.tx_index, OLD.op_index, OLD.seen_at) THEN
      RAISE EXCEPTION 'deposit % may only move on from %', OLD.id, OLD.status
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER deposit_guard BEFORE UPDATE ON deposit
    FOR EACH ROW EXECUTE FUNCTION guard_deposit();
  CREATE TRIGGER deposit_keep BEFORE DELETE OR TRUNCATE ON deposit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const INCIDENTS = `
  CREATE TABLE incident (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    height bigint,
    message text NOT NULL,
    details jsonb NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now(),
    resolved_at timestamptz,
    resolved_by text,
    CHECK ((resolved_at IS NULL) = (resolved_by IS NULL))
  );
  CREATE UNIQUE INDEX incident_open ON incident ((resolved_at IS NULL)) WHERE resolved_at IS NULL;

  CREATE TABLE foreign_outflow (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    wallet text NOT NULL CHECK (wallet ~ '^0x[0-9a-f]{40}$'),
    tx_hash text NOT NULL CHECK (tx_hash ~ '^0x[0-9a-f]{64}$'),
    amount_atoken numeric(78, 0) NOT NULL CHECK (amount_atoken >= 0),
    fee_atoken numeric(78, 0) NOT NULL CHECK (fee_atoken >= 0),
    height bigint NOT NULL CHECK (height >= 0),
    seen_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tx_hash, wallet)
  );
  CREATE TRIGGER foreign_outflow_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON foreign_outflow
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** Format 1 of the ledger, the part that deposits and the journal need. */
export class LedgerCore1760000000001 implements MigrationInterface {
  readonly name = "LedgerCore1760000000001";

  /** Creates every table, index and rule in the runner's transaction. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [IDENTITY_AND_CUSTOMERS, JOURNAL, BALANCES, EVENTS, DEPOSITS, INCIDENTS]) {
      await runner.query(part);
    }
  }

  /** A ledger is never taken down by software. */
  async down(): Promise<void> {
    throw new Error("the ledger's tables are never dropped by a migration");
  }
}
