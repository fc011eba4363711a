/**
 * Webhooks: who is told of which events, with which secrets, and what became of each delivery; leases
 * of background work; keys that sign their requests.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const LEASES = `
  CREATE TABLE task_lease (
    task text PRIMARY KEY,
    owner text NOT NULL,
    expires_at timestamptz NOT NULL
  );
  CREATE TRIGGER task_lease_keep BEFORE DELETE OR TRUNCATE ON task_lease
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const WEBHOOKS = `
  CREATE TABLE webhook (
    id text PRIMARY KEY CHECK (id ~ '^[a-z0-9]{12}$'),
    position bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    url text NOT NULL CHECK (length(url) BETWEEN 1 AND 2048),
    -- Types of events: "deposit.credited", "deposit.*" or "*".
    events text[] NOT NULL CHECK (cardinality(events) BETWEEN 1 AND 50),
    description text CHECK (length(description) BETWEEN 1 AND 200),
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'disabled', 'removed')),
    reason text CHECK (length(reason) BETWEEN 1 AND 1000),
    changed_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Events up to here have their deliveries, or were not asked for.
    cursor_seq bigint NOT NULL CHECK (cursor_seq >= 0),
    -- Deliveries that were given up since the last one that arrived.
    dead_in_a_row integer NOT NULL DEFAULT 0 CHECK (dead_in_a_row >= 0),
    CHECK ((status = 'disabled') = (reason IS NOT NULL))
  );
  CREATE FUNCTION webhook_is_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.status = 'removed'
       OR (NEW.id, NEW.position, NEW.url, NEW.events, NEW.description, NEW.created_at)
          IS DISTINCT FROM
          (OLD.id, OLD.position, OLD.url, OLD.events, OLD.description, OLD.created_at) THEN
      RAISE EXCEPTION 'webhook % is what it was made as, or removed', OLD.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER webhook_fixed BEFORE UPDATE ON webhook
    FOR EACH ROW EXECUTE FUNCTION webhook_is_fixed();
  CREATE TRIGGER webhook_keep BEFORE DELETE OR TRUNCATE ON webhook
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  CREATE TABLE webhook_secret (
    id text PRIMARY KEY CHECK (id ~ '^[a-z0-9]{12}$'),
    webhook_id text NOT NULL REFERENCES webhook (id),
    -- Gone when it is retired.
    secret text CHECK (length(secret) BETWEEN 32 AND 200),
    created_at timestamptz NOT NULL DEFAULT now(),
    retired_at timestamptz,
    CHECK ((secret IS NULL) = (retired_at IS NOT NULL))
  );
  CREATE INDEX webhook_secret_live ON webhook_secret (webhook_id) WHERE retired_at IS NULL;
  -- Two at most, so that a receiver can change over; never none while something is delivered.
  CREATE FUNCTION guard_webhook_secret() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    state text;
    live integer;
  BEGIN
    SELECT status INTO state FROM webhook WHERE id = NEW.webhook_id FOR UPDATE;
    SELECT count(*) INTO live FROM webhook_secret
     WHERE webhook_id = NEW.webhook_id AND retired_at IS NULL AND id <> NEW.id;
    IF TG_OP = 'INSERT' THEN
      IF live >= 2 OR state = 'removed' OR NEW.retired_at IS NOT NULL THEN
        RAISE EXCEPTION 'webhook % has two live secrets, or is removed', NEW.webhook_id
          USING ERRCODE = 'restrict_violation';
      END IF;
    ELSIF OLD.retired_at IS NOT NULL OR NEW.retired_at IS NULL
       OR (NEW.id, NEW.webhook_id, NEW.created_at)
          IS DISTINCT FROM (OLD.id, OLD.webhook_id, OLD.created_at)
       OR live = 0 AND state <> 'removed' THEN
      RAISE EXCEPTION 'a secret may only be retired, once, and not as the last one'
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER webhook_secret_guard BEFORE INSERT OR UPDATE ON webhook_secret
    FOR EACH ROW EXECUTE FUNCTION guard_webhook_secret();
  CREATE TRIGGER webhook_secret_keep BEFORE DELETE OR TRUNCATE ON webhook_secret
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const DELIVERIES = `
  CREATE TABLE webhook_delivery (
    webhook_id text NOT NULL REFERENCES webhook (id),
    seq bigint NOT NULL REFERENCES event (seq),
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'dead')),
    -- All there ever were: they tell a late answer to an earlier one from the answer to the last.
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    -- Those since it was last asked for.
    tries integer NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_try_at timestamptz NOT NULL DEFAULT now(),
    last_status integer,
    last_error text CHECK (length(last_error) <= 500),
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (webhook_id, seq)
  );
  CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook_id, seq)
    WHERE status = 'pending';
  CREATE INDEX webhook_delivery_dead ON webhook_delivery (webhook_id, seq) WHERE status = 'dead';
  CREATE FUNCTION webhook_delivery_counts_up() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF (NEW.webhook_id, NEW.seq) IS DISTINCT FROM (OLD.webhook_id, OLD.seq)
       OR NEW.attempts < OLD.attempts THEN
      RAISE EXCEPTION 'delivery % of webhook % never becomes another one', OLD.seq, OLD.webhook_id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER webhook_delivery_fixed BEFORE UPDATE ON webhook_delivery
    FOR EACH ROW EXECUTE FUNCTION webhook_delivery_counts_up();
  CREATE TRIGGER webhook_delivery_keep BEFORE DELETE OR TRUNCATE ON webhook_delivery
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const SIGNED_REQUESTS = `
  -- How the requests of a key are signed; a key without a row signs nothing.
  CREATE TABLE api_key_signature (
    key_id text PRIMARY KEY REFERENCES api_key (id),
    kind text NOT NULL CHECK (kind IN ('hmac', 'ed25519')),
    -- The shared secret, or the public key as 64 hex digits.
    verifier text NOT NULL CHECK (length(verifier) BETWEEN 32 AND 200)
  );
  CREATE TRIGGER api_key_signature_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON api_key_signature FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  -- Digest of what was signed: the same signed request is let through once.
  ALTER TABLE api_call ADD COLUMN signed_digest text CHECK (signed_digest ~ '^[0-9a-f]{64}$');
  CREATE UNIQUE INDEX api_call_signed_once ON api_call (signed_digest)
    WHERE signed_digest IS NOT NULL;`;

/** Webhooks, leases and signed requests. */
export class Webhooks1760000000010 implements MigrationInterface {
  readonly name = "Webhooks1760000000010";

  /** Adds tables and rules in the runner's transaction. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [LEASES, WEBHOOKS, DELIVERIES, SIGNED_REQUESTS]) await runner.query(part);
  }

  /** A ledger is never taken down by software. */
  async down(): Promise<void> {
    throw new Error("the ledger's tables are never dropped by a migration");
  }
}
