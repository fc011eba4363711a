/**
 * The exchange's own movements: sweeps of deposit addresses, gas that is given to them, what goes to
 * cold storage and what is to come back, and the account of coins that are in transit between two of
 * our addresses. Whatever must not happen twice has a key that is UNIQUE here.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** Coins in transit, and who they belong to while a hot wallet pays them. */
const ACCOUNTS = `
  CREATE FUNCTION is_transit_account(code text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT code = 'asset:in_transit'
  $$;
  ALTER TABLE posting
    DROP CONSTRAINT posting_debit_check,
    DROP CONSTRAINT posting_credit_check,
    ADD CONSTRAINT posting_debit_check
      CHECK (is_account(debit) OR is_decision_account(debit) OR is_fee_account(debit)
             OR is_wallet_account(debit) OR is_transit_account(debit)),
    ADD CONSTRAINT posting_credit_check
      CHECK (is_account(credit) OR is_decision_account(credit) OR is_fee_account(credit)
             OR is_wallet_account(credit) OR is_transit_account(credit));
  INSERT INTO customer (id) VALUES ('causeway:treasury') ON CONFLICT DO NOTHING;
  -- Its deposits would be nobody's.
  ALTER TABLE deposit_address
    ADD CONSTRAINT deposit_address_of_a_customer CHECK (customer_id <> 'causeway:treasury');`;

const SWEEPS = `
  CREATE TABLE sweep (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address text NOT NULL REFERENCES deposit_address (address),
    asset text NOT NULL REFERENCES asset (symbol),
    -- Where it goes: a hot wallet of ours, and no other address.
    wallet text NOT NULL REFERENCES wallet (address),
    -- With the fee of the first attempt: a dearer one sends less of the coin.
    amount_units numeric(78,0) NOT NULL CHECK (amount_units > 0),
    gas_limit numeric(20,0) NOT NULL CHECK (gas_limit >= 21000),
    -- Both stand before anything is signed.
    nonce numeric(20,0) CHECK (nonce >= 0),
    gas_price_atoken numeric(78,0) CHECK (gas_price_atoken >= 0),
    state text NOT NULL CHECK (state IN ('needs-gas', 'ready', 'signed', 'sent', 'frozen',
      'settled', 'failed', 'void', 'foreign')),
    reason text,
    mined_hash text CHECK (mined_hash ~ '^0x[0-9a-f]{64}$'),
    block_number bigint,
    created_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (address, nonce),
    CHECK ((nonce IS NULL) = (gas_price_atoken IS NULL)),
    CHECK (nonce IS NOT NULL OR state IN ('needs-gas', 'void')),
    CHECK (state NOT IN ('settled', 'failed') OR mined_hash IS NOT NULL)
  );
  -- One at a time of an address: the next one's nonce is known when this one has ended.
  CREATE UNIQUE INDEX sweep_open ON sweep (address)
    WHERE state IN ('needs-gas', 'ready', 'signed', 'sent', 'frozen');
  CREATE INDEX sweep_failed ON sweep (asset, changed_at) WHERE state = 'failed';
  CREATE TABLE sweep_attempt (
    sweep_id bigint NOT NULL REFERENCES sweep (id),
    n integer NOT NULL CHECK (n >= 0),
    raw text NOT NULL CHECK (raw ~ '^0x[0-9a-f]+$'),
    hash text NOT NULL UNIQUE CHECK (hash ~ '^0x[0-9a-f]{64}$'),
    gas_price_atoken numeric(78,0) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sweep_id, n)
  );
  CREATE TRIGGER sweep_attempt_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON sweep_attempt
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE TRIGGER sweep_keep BEFORE DELETE OR TRUNCATE ON sweep
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  CREATE FUNCTION guard_sweep() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.state IN ('settled', 'failed', 'void', 'foreign')
       OR (OLD.address, OLD.asset, OLD.wallet) IS DISTINCT FROM (NEW.address, NEW.asset, NEW.wallet)
       OR OLD.nonce IS NOT NULL
          AND (OLD.nonce, OLD.gas_price_atoken, OLD.amount_units, OLD.gas_limit) IS DISTINCT FROM
              (NEW.nonce, NEW.gas_price_atoken, NEW.amount_units, NEW.gas_limit)
       OR NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN
          (('needs-gas', 'ready'), ('needs-gas', 'void'), ('ready', 'signed'),
           ('ready', 'frozen'), ('signed', 'sent'),
           ('signed', 'frozen'), ('sent', 'frozen'), ('frozen', 'signed'), ('frozen', 'foreign'),
           ('signed', 'settled'), ('sent', 'settled'), ('frozen', 'settled'),
           ('signed', 'failed'), ('sent', 'failed'), ('frozen', 'failed')) THEN
      RAISE EXCEPTION 'sweep % cannot go from % to %', OLD.id, OLD.state, NEW.state
        USING ERRCODE = 'restrict_violation';
    END IF;
    NEW.changed_at := clock_timestamp();
    RETURN NEW;
  END $$;
  CREATE TRIGGER sweep_guard BEFORE UPDATE ON sweep
    FOR EACH ROW EXECUTE FUNCTION guard_sweep();`;

/** A list of where to look, and no truth: how much there is the chain says. */
const DUE = `
  CREATE TABLE sweep_due (
    address text NOT NULL REFERENCES deposit_address (address),
    asset text NOT NULL,
    -- A late one is never: it was looked at, and nothing is there.
    due_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (address, asset)
  );
  CREATE INDEX sweep_due_next ON sweep_due (due_at);
  INSERT INTO sweep_due (address, asset)
  SELECT DISTINCT address, asset FROM deposit WHERE status <> 'reversed';
  CREATE FUNCTION note_sweep_due() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO sweep_due (address, asset)
    SELECT DISTINCT address, asset FROM new_deposit ORDER BY address, asset
    ON CONFLICT (address, asset) DO UPDATE SET due_at = least(sweep_due.due_at, excluded.due_at);
    RETURN NULL;
  END $$;
  CREATE TRIGGER deposit_is_to_be_swept AFTER INSERT ON deposit
    REFERENCING NEW TABLE AS new_deposit
    FOR EACH STATEMENT EXECUTE FUNCTION note_sweep_due();`;

/** What a hot wallet pays for the exchange itself: a withdrawal like all others, with a reason. */
const MOVES = `
  CREATE TABLE treasury_move (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('top-up', 'cold')),
    withdrawal_id text NOT NULL UNIQUE REFERENCES withdrawal (id),
    asset text NOT NULL REFERENCES asset (symbol),
    destination text NOT NULL CHECK (destination ~ '^0x[0-9a-f]{40}$'),
    amount_units numeric(78,0) NOT NULL CHECK (amount_units > 0),
    -- Gas is given once for each sweep, to its address.
    sweep_id bigint UNIQUE REFERENCES sweep (id),
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'arrived', 'void')),
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((kind = 'top-up') = (sweep_id IS NOT NULL)),
    CHECK (kind = 'cold' OR asset = 'TOKEN')
  );
  CREATE UNIQUE INDEX treasury_move_one_to_cold ON treasury_move (asset)
    WHERE kind = 'cold' AND state = 'open';
  CREATE INDEX treasury_move_open ON treasury_move (id) WHERE state = 'open';
  CREATE TRIGGER treasury_move_keep BEFORE DELETE OR TRUNCATE ON treasury_move
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE FUNCTION guard_treasury_move() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF OLD.state <> 'open' OR (OLD.id, OLD.kind, OLD.withdrawal_id, OLD.asset, OLD.destination,
            OLD.amount_units, OLD.sweep_id) IS DISTINCT FROM (NEW.id, NEW.kind, NEW.withdrawal_id,
            NEW.asset, NEW.destination, NEW.amount_units, NEW.sweep_id) THEN
        RAISE EXCEPTION 'treasury move % has ended or is fixed', OLD.id
          USING ERRCODE = 'restrict_violation';
      END IF;
      RETURN NEW;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM withdrawal w WHERE w.id = NEW.withdrawal_id
          AND w.customer_id = 'causeway:treasury' AND w.asset = NEW.asset AND w.fee_units = 0
          AND w.destination = NEW.destination AND w.amount_units = NEW.amount_units)
       OR NEW.kind = 'top-up' AND NOT EXISTS (SELECT 1 FROM sweep s
          WHERE s.id = NEW.sweep_id AND s.address = NEW.destination AND s.state = 'needs-gas') THEN
      RAISE EXCEPTION 'treasury move of % is not what its withdrawal pays', NEW.withdrawal_id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER treasury_move_guard BEFORE INSERT OR UPDATE ON treasury_move
    FOR EACH ROW EXECUTE FUNCTION guard_treasury_move();

  -- Nobody else withdraws in the treasury's name.
  CREATE FUNCTION refuse_withdrawal_of_treasury() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM treasury_move WHERE withdrawal_id = NEW.id) THEN
      RAISE EXCEPTION 'withdrawal % of the treasury has no move', NEW.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER withdrawal_of_treasury AFTER INSERT ON withdrawal
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.customer_id = 'causeway:treasury')
    EXECUTE FUNCTION refuse_withdrawal_of_treasury();`;

const COLD = `
  -- Addresses that a policy named as cold storage at some time: what comes from them is ours.
  CREATE TABLE cold_address (
    asset text NOT NULL REFERENCES asset (symbol),
    address text NOT NULL CHECK (address ~ '^0x[0-9a-f]{40}$'),
    named_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (asset, address)
  );
  CREATE TRIGGER cold_address_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON cold_address
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE TABLE refill_request (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    asset text NOT NULL REFERENCES asset (symbol),
    amount_units numeric(78,0) NOT NULL CHECK (amount_units > 0),
    came_units numeric(78,0) NOT NULL DEFAULT 0 CHECK (came_units >= 0),
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'filled', 'withdrawn')),
    created_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE UNIQUE INDEX refill_request_open ON refill_request (asset) WHERE state = 'open';
  CREATE TRIGGER refill_request_keep BEFORE DELETE OR TRUNCATE ON refill_request
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** A worker of the format before would not know what is in transit; a watcher would credit gas. */
const FORMAT = `UPDATE meta SET value = '4' WHERE key = 'format_version' AND value = '3'`;

/** Sweeps, moves and cold storage; listed explicitly. */
export class Treasury1760000000019 implements MigrationInterface {
  readonly name = "Treasury1760000000019";

  async up(runner: QueryRunner): Promise<void> {
    for (const part of [ACCOUNTS, SWEEPS, DUE, MOVES, COLD, FORMAT]) await runner.query(part);
  }

  /** What was signed for the exchange itself is never forgotten. */
  async down(): Promise<void> {
    throw new Error("treasury tables are never dropped: they hold what was signed");
  }
}
