/**
 * Tokens: which contract an asset is, the code that it was accepted with, tokens that arrived and are
 * not credited, and what a token's payments and outflows need beside those of coins. A token whose
 * code has changed is neither credited nor paid out, whichever program asks.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const ASSETS = `
  CREATE TABLE asset (
    symbol text PRIMARY KEY CHECK (symbol ~ '^[A-Za-z0-9_.:-]{1,32}$'),
    -- NULL for the chain's own coin alone.
    contract text UNIQUE CHECK (contract ~ '^0x[0-9a-f]{40}$'),
    decimals integer NOT NULL CHECK (decimals BETWEEN 0 AND 255),
    -- First block whose movements are booked one by one; what was there before is booked as a sum.
    from_height bigint NOT NULL CHECK (from_height >= 0),
    registered_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((symbol = 'TOKEN') = (contract IS NULL))
  );
  CREATE TRIGGER asset_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON asset
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  INSERT INTO asset (symbol, decimals, from_height) VALUES ('TOKEN', 18, 0);

  CREATE TABLE token_state (
    asset text PRIMARY KEY REFERENCES asset (symbol) CHECK (asset <> 'TOKEN'),
    -- What was there before from_height is booked.
    opened boolean NOT NULL DEFAULT false,
    -- The accepted code: NULL before any was seen. Keccak-256 of the code, and the word in EIP-1967's
    -- slot for the implementation.
    code_hash text CHECK (code_hash ~ '^0x[0-9a-f]{64}$'),
    implementation text CHECK (implementation ~ '^0x[0-9a-f]{64}$'),
    paused boolean NOT NULL DEFAULT false,
    reason text NOT NULL DEFAULT '' CHECK (length(reason) <= 1000),
    changed_by text NOT NULL CHECK (length(changed_by) BETWEEN 1 AND 200),
    changed_at timestamptz NOT NULL DEFAULT now(),
    CHECK (NOT paused OR reason <> '')
  );
  CREATE TABLE token_state_change (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    asset text NOT NULL REFERENCES asset (symbol),
    code_hash text,
    implementation text,
    paused boolean NOT NULL,
    reason text NOT NULL,
    changed_by text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  CREATE TRIGGER token_state_change_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON token_state_change FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE TRIGGER token_state_keep BEFORE DELETE OR TRUNCATE ON token_state
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  CREATE FUNCTION guard_token_state() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    -- Other code is accepted only where the token stood still because of it; a list may name the
    -- code alone, and the implementation is then what is seen first.
    IF NEW.asset <> OLD.asset OR OLD.opened AND NOT NEW.opened
       OR NOT OLD.paused
          AND (OLD.code_hash IS DISTINCT FROM NEW.code_hash AND OLD.code_hash IS NOT NULL
            OR OLD.implementation IS DISTINCT FROM NEW.implementation
               AND OLD.implementation IS NOT NULL) THEN
      RAISE EXCEPTION 'the accepted code of % stands', OLD.asset
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER token_state_guard BEFORE UPDATE ON token_state
    FOR EACH ROW EXECUTE FUNCTION guard_token_state();

  CREATE FUNCTION note_token_state() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO token_state_change (asset, code_hash, implementation, paused, reason, changed_by)
    VALUES (NEW.asset, NEW.code_hash, NEW.implementation, NEW.paused, NEW.reason, NEW.changed_by);
    RETURN NULL;
  END $$;
  CREATE TRIGGER token_state_noted AFTER INSERT OR UPDATE ON token_state
    FOR EACH ROW EXECUTE FUNCTION note_token_state();`;

/** Not foreign keys: each would lock the one row of TOKEN for every posting. */
const KNOWN_ASSETS = `
  CREATE FUNCTION refuse_unknown_posting() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    unknown text;
  BEGIN
    SELECT n.asset INTO unknown FROM new_posting n
     WHERE n.asset <> 'TOKEN' AND NOT EXISTS (SELECT 1 FROM asset a WHERE a.symbol = n.asset)
     LIMIT 1;
    IF unknown IS NOT NULL THEN
      RAISE EXCEPTION 'no asset is called %', unknown USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER posting_of_known_asset AFTER INSERT ON posting
    REFERENCING NEW TABLE AS new_posting
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unknown_posting();

  CREATE FUNCTION refuse_unknown_asset() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM asset WHERE symbol = NEW.asset) THEN
      RAISE EXCEPTION 'no asset is called %', NEW.asset USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER deposit_of_known_asset BEFORE INSERT ON deposit
    FOR EACH ROW WHEN (NEW.asset <> 'TOKEN') EXECUTE FUNCTION refuse_unknown_asset();
  CREATE TRIGGER withdrawal_of_known_asset BEFORE INSERT ON withdrawal
    FOR EACH ROW WHEN (NEW.asset <> 'TOKEN') EXECUTE FUNCTION refuse_unknown_asset();`;

const PAUSES = `
  -- Why a deposit is held: it is let go by whoever holds it.
  ALTER TABLE deposit ADD COLUMN held_for text CHECK (held_for ~ '^[a-z-]{1,40}$');
  CREATE INDEX deposit_held_for ON deposit (asset, height) WHERE status = 'held';

  CREATE FUNCTION refuse_paused_credit() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (SELECT 1 FROM token_state WHERE asset = NEW.asset AND paused) THEN
      RAISE EXCEPTION 'token % stands still: see causeway tokens state', NEW.asset
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER deposit_not_paused BEFORE INSERT OR UPDATE OF status ON deposit
    FOR EACH ROW WHEN (NEW.asset <> 'TOKEN' AND NEW.status = 'credited')
    EXECUTE FUNCTION refuse_paused_credit();

  CREATE FUNCTION refuse_paused_slot() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    paused_asset text;
  BEGIN
    SELECT w.asset INTO paused_asset FROM withdrawal w JOIN token_state t ON t.asset = w.asset
     WHERE w.id = NEW.withdrawal_id AND t.paused;
    IF paused_asset IS NOT NULL THEN
      RAISE EXCEPTION 'token % stands still: see causeway tokens state', paused_asset
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  -- What is mined already reserves nothing and is booked all the same.
  CREATE TRIGGER nonce_slot_not_paused BEFORE INSERT ON nonce_slot
    FOR EACH ROW WHEN (NEW.reserved_atoken > 0) EXECUTE FUNCTION refuse_paused_slot();`;

const SIGHTINGS = `
  -- What arrived at our addresses and is not credited. Claims of contracts: nothing of it is believed.
  CREATE TABLE token_sighting (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    height bigint NOT NULL CHECK (height >= 0),
    block_hash text NOT NULL CHECK (block_hash ~ '^0x[0-9a-f]{64}$'),
    tx_hash text NOT NULL CHECK (tx_hash ~ '^0x[0-9a-f]{64}$'),
    tx_index integer NOT NULL CHECK (tx_index >= 0),
    -- Numbered as those of deposits.
    op_index integer NOT NULL CHECK (op_index >= 0),
    rewind integer NOT NULL DEFAULT 0 CHECK (rewind >= 0),
    contract text NOT NULL CHECK (contract ~ '^0x[0-9a-f]{40}$'),
    standard text NOT NULL CHECK (standard IN ('erc20', 'erc721', 'erc1155')),
    address text NOT NULL CHECK (address ~ '^0x[0-9a-f]{40}$'),
    sender text CHECK (sender ~ '^0x[0-9a-f]{40}$'),
    -- Units of an ERC-20, the id of an NFT; NULL where the log names several or none.
    claimed numeric(78, 0) CHECK (claimed >= 0),
    reason text NOT NULL CHECK (reason IN
      ('UNKNOWN_TOKEN', 'NFT', 'MALFORMED', 'NOT_ARRIVED', 'SHORTFALL', 'UNREADABLE')),
    seen_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (height, tx_index, op_index, rewind)
  );
  CREATE INDEX token_sighting_address ON token_sighting (address, id);
  CREATE INDEX token_sighting_transaction ON token_sighting (tx_hash);
  CREATE TRIGGER token_sighting_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON token_sighting
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** Payments and outflows of tokens, told apart from those of coins. */
const PAYMENTS = `
  ALTER TABLE foreign_outflow
    ADD COLUMN asset text NOT NULL DEFAULT 'TOKEN',
    DROP CONSTRAINT foreign_outflow_tx_hash_wallet_key,
    ADD CONSTRAINT foreign_outflow_once UNIQUE (tx_hash, wallet, asset);

  -- What says that a slot paid: a successful receipt for coins, the contract's own log for tokens,
  -- which may succeed and move nothing, or a person who looked.
  ALTER TABLE nonce_slot
    ADD COLUMN paid_proof text CHECK (paid_proof IN ('receipt', 'transfer', 'decision'));
  CREATE FUNCTION refuse_unproven_transfer() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF coalesce(NEW.paid_proof, 'receipt') = 'receipt'
       AND EXISTS (SELECT 1 FROM withdrawal WHERE id = NEW.withdrawal_id AND asset <> 'TOKEN') THEN
      RAISE EXCEPTION 'nothing proves that withdrawal % was paid', NEW.withdrawal_id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER nonce_slot_paid_proven BEFORE INSERT OR UPDATE OF outcome ON nonce_slot
    FOR EACH ROW WHEN (NEW.outcome = 'paid') EXECUTE FUNCTION refuse_unproven_transfer();

  -- Destination and amount are those of the token's transfer; NULL for coins.
  ALTER TABLE recovered_payment
    ADD COLUMN contract text CHECK (contract ~ '^0x[0-9a-f]{40}$');

  CREATE OR REPLACE FUNCTION undecided_payment_of(request text)
    RETURNS TABLE (tx_hash text, height bigint) LANGUAGE sql STABLE AS $$
    SELECT r.tx_hash, r.height FROM withdrawal w
      JOIN asset a ON a.symbol = w.asset
      JOIN recovered_payment r
        ON r.destination = w.destination AND r.amount_units = w.amount_units
       AND r.contract IS NOT DISTINCT FROM a.contract
     WHERE w.id = request AND r.decision IS NULL
       AND NOT EXISTS (SELECT 1 FROM withdrawal_clearance c
                        WHERE c.withdrawal_id = w.id AND c.epoch >= r.epoch)
     ORDER BY r.nonce LIMIT 1
  $$;`;

/** Assets beside the chain's own coin. */
export class Tokens1760000000012 implements MigrationInterface {
  readonly name = "Tokens1760000000012";

  /** Creates tables, columns and rules in the runner's transaction. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [ASSETS, KNOWN_ASSETS, PAUSES, SIGHTINGS, PAYMENTS]) {
      await runner.query(part);
    }
  }

  /** A ledger never forgets what it owes. */
  async down(): Promise<void> {
    throw new Error("assets of customers are never dropped by a migration");
  }
}
