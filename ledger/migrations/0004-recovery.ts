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
  CREATE FUNCTION refuse_counter_step_back() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.seq < OLD.seq OR NEW.epoch < OLD.epoch THEN
      RAISE EXCEPTION 'event numbers never go back' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER event_counter_forward BEFORE UPDATE ON event_counter
    FOR EACH ROW EXECUTE FUNCTION refuse_counter_step_back();

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

/** Identity, epoch and recovery of the ledger. */
export class Recovery1760000000004 implements MigrationInterface {
  readonly name = "Recovery1760000000004";

  async up(runner: QueryRunner): Promise<void> {
    for (const part of [IDENTITY_AND_EPOCH, ADDRESSES]) await runner.query(part);
  }

  /** A ledger never forgets that it was recovered. */
  async down(): Promise<void> {
    throw new Error("what a recovery proved is never dropped by a migration");
  }
}
