/**
 * Tables of withdrawals: requests, nonce slots, signed attempts. What must never happen (a nonce
 * recycled, a second payment, stored bytes changed) is refused by the database itself.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const WITHDRAWAL = `
  CREATE SEQUENCE withdrawal_position;
  CREATE TABLE withdrawal (
    id text PRIMARY KEY,
    -- Taken under the event counter's lock, so positions appear in commit order.
    position bigint NOT NULL UNIQUE DEFAULT nextval('withdrawal_position'),
    idempotency_key text NOT NULL UNIQUE CHECK (length(idempotency_key) BETWEEN 1 AND 128),
    request_hash text NOT NULL,
    customer_id text NOT NULL REFERENCES customer (id),
    asset text NOT NULL,
    wallet text NOT NULL CHECK (wallet ~ '^0x[0-9a-f]{40}$'),
    destination text NOT NULL CHECK (destination ~ '^0x[0-9a-f]{40}$'),
    -- As the client wrote it, so that the answer shows what was asked.
    destination_text text NOT NULL CHECK (lower(destination_text) = destination),
    amount_atoken numeric(78,0) NOT NULL CHECK (amount_atoken > 0),
    status text NOT NULL CHECK (status IN ('accepted', 'slotted', 'signed', 'broadcast',
      'included', 'frozen', 'settled', 'failed', 'rejected', 'cancelled')),
    reason text,
    next_try_at timestamptz NOT NULL DEFAULT now(),
    steps integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX withdrawal_customer ON withdrawal (customer_id, position);
  CREATE INDEX withdrawal_status ON withdrawal (status, position);
  CREATE INDEX withdrawal_open ON withdrawal (wallet, position)
    WHERE status NOT IN ('settled', 'failed', 'rejected', 'cancelled');
  CREATE TABLE withdrawal_history (
    withdrawal_id text NOT NULL REFERENCES withdrawal (id),
    seq integer NOT NULL,
    status text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (withdrawal_id, seq)
  )`;

const SLOTS = `
  CREATE TABLE hot_wallet (
    wallet text PRIMARY KEY CHECK (wallet ~ '^0x[0-9a-f]{40}$'),
    next_nonce numeric(20,0) NOT NULL CHECK (next_nonce >= 0),
    -- Highest block whose effect on this wallet the slots' outcomes hold: a balance read below it
    -- is too old to count a reserve against.
    settled_height bigint NOT NULL DEFAULT 0,
    lease_owner text,
    lease_epoch bigint NOT NULL DEFAULT 0,
    lease_expires_at timestamptz
  );
  CREATE TABLE nonce_slot (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    wallet text NOT NULL REFERENCES hot_wallet (wallet),
    nonce numeric(20,0) NOT NULL CHECK (nonce >= 0),
    withdrawal_id text NOT NULL REFERENCES withdrawal (id),
    gas_limit numeric(20,0) NOT NULL CHECK (gas_limit > 0),
    gas_price_atoken numeric(78,0) NOT NULL CHECK (gas_price_atoken >= 0),
    -- Value + gas limit x the highest price signed: what the wallet must still cover.
    reserved_atoken numeric(80,0) NOT NULL CHECK (reserved_atoken >= 0),
    taken_at timestamptz NOT NULL DEFAULT now(),
    outcome text CHECK (outcome IN ('paid', 'reverted', 'foreign')),
    live boolean GENERATED ALWAYS AS (outcome IS NULL) STORED,
    mined_hash text,
    block_number bigint,
    block_hash text,
    gas_used numeric(20,0),
    effective_gas_price_atoken numeric(78,0),
    UNIQUE (wallet, nonce),
    CHECK (outcome IS NULL OR mined_hash IS NOT NULL)
  );
  -- A second slot exists only with stored proof that a foreign transaction consumed the first.
  CREATE UNIQUE INDEX nonce_slot_one_per_withdrawal ON nonce_slot (withdrawal_id)
    WHERE outcome IS DISTINCT FROM 'foreign';
  CREATE INDEX nonce_slot_live ON nonce_slot (wallet, nonce) WHERE outcome IS NULL;
  CREATE INDEX nonce_slot_withdrawal ON nonce_slot (withdrawal_id, nonce);
  CREATE TABLE withdrawal_attempt (
    slot_id bigint NOT NULL REFERENCES nonce_slot (id),
    n integer NOT NULL CHECK (n >= 0),
    -- The signed bytes; only a transaction taken over from the chain has none.
    raw text CHECK (raw ~ '^0x[0-9a-f]+$'),
    adopted boolean NOT NULL DEFAULT false,
    hash text NOT NULL UNIQUE CHECK (hash ~ '^0x[0-9a-f]{64}$'),
    gas_limit numeric(20,0) NOT NULL,
    gas_price_atoken numeric(78,0) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (slot_id, n),
    CHECK (raw IS NOT NULL OR adopted)
  );
  CREATE TABLE signing_freeze (
    wallet text PRIMARY KEY,
    frozen boolean NOT NULL,
    reason text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now()
  )`;

const GUARDS = `
  CREATE TRIGGER withdrawal_keep BEFORE DELETE OR TRUNCATE ON withdrawal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE TRIGGER withdrawal_history_keep BEFORE UPDATE OR DELETE OR TRUNCATE
    ON withdrawal_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE TRIGGER hot_wallet_keep BEFORE DELETE OR TRUNCATE ON hot_wallet
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE TRIGGER nonce_slot_keep BEFORE DELETE OR TRUNCATE ON nonce_slot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE TRIGGER withdrawal_attempt_keep BEFORE UPDATE OR DELETE OR TRUNCATE
    ON withdrawal_attempt FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  CREATE FUNCTION withdrawal_terms_are_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.status IN ('settled', 'failed', 'rejected', 'cancelled') THEN
      RAISE EXCEPTION 'withdrawal % has ended', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF (OLD.id, OLD.position, OLD.idempotency_key, OLD.request_hash, OLD.customer_id, OLD.asset,
        OLD.wallet, OLD.destination, OLD.amount_atoken)
       IS DISTINCT FROM
       (NEW.id, NEW.position, NEW.idempotency_key, NEW.request_hash, NEW.customer_id, NEW.asset,
        NEW.wallet, NEW.destination, NEW.amount_atoken) THEN
      RAISE EXCEPTION 'withdrawal % cannot change its terms', OLD.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER withdrawal_fixed BEFORE UPDATE ON withdrawal
    FOR EACH ROW EXECUTE FUNCTION withdrawal_terms_are_fixed();

  CREATE FUNCTION nonce_slot_is_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.outcome IS NOT NULL
       OR (OLD.wallet, OLD.nonce, OLD.withdrawal_id)
          IS DISTINCT FROM (NEW.wallet, NEW.nonce, NEW.withdrawal_id) THEN
      RAISE EXCEPTION 'nonce slot % is never recycled', OLD.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER nonce_slot_fixed BEFORE UPDATE ON nonce_slot
    FOR EACH ROW EXECUTE FUNCTION nonce_slot_is_fixed();

  CREATE FUNCTION hot_wallet_nonce_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.next_nonce < OLD.next_nonce THEN
      RAISE EXCEPTION 'the next nonce of % only grows', OLD.wallet
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER hot_wallet_grows BEFORE UPDATE ON hot_wallet
    FOR EACH ROW EXECUTE FUNCTION hot_wallet_nonce_only_grows()`;

/** Creates the withdrawal tables; listed explicitly after the ledger's first migration. */
export class Withdrawals1760000000002 implements MigrationInterface {
  readonly name = "Withdrawals1760000000002";

  async up(runner: QueryRunner): Promise<void> {
    for (const part of [WITHDRAWAL, SLOTS, GUARDS]) await runner.query(part);
  }

  /** Refused: dropping these tables would forget what was signed. */
  async down(): Promise<void> {
    throw new Error("withdrawal tables are never dropped: they hold what was signed");
  }
}
