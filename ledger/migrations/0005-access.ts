/** API keys, by their digests alone, and the calls that may have changed something. */
import type { MigrationInterface, QueryRunner } from "typeorm";

const API_KEYS = `
  CREATE TABLE api_key (
    id text PRIMARY KEY CHECK (id ~ '^[a-z0-9]{12}$'),
    digest text NOT NULL UNIQUE CHECK (digest ~ '^[0-9a-f]{64}$'),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    scopes text[] NOT NULL CHECK (cardinality(scopes) > 0),
    calls_per_second integer CHECK (calls_per_second BETWEEN 1 AND 1000000),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz
  );

  -- A key is never given more rights, a longer life or another secret: a new one is made.
  CREATE FUNCTION guard_api_key() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL
       OR (NEW.id, NEW.digest, NEW.name, NEW.scopes, NEW.calls_per_second, NEW.created_at,
           NEW.expires_at)
          IS DISTINCT FROM
          (OLD.id, OLD.digest, OLD.name, OLD.scopes, OLD.calls_per_second, OLD.created_at,
           OLD.expires_at) THEN
      RAISE EXCEPTION 'an API key may only be revoked, once' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER api_key_guard BEFORE UPDATE ON api_key
    FOR EACH ROW EXECUTE FUNCTION guard_api_key();
  CREATE TRIGGER api_key_keep BEFORE DELETE OR TRUNCATE ON api_key
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** Without a reference to api_key: the key of the home's file has no row. */
const API_CALLS = `
  CREATE TABLE api_call (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_id text NOT NULL,
    service text NOT NULL,
    method text NOT NULL,
    path text NOT NULL,
    idempotency_key text,
    body_sha256 text NOT NULL CHECK (body_sha256 ~ '^[0-9a-f]{64}$'),
    at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX api_call_by_key ON api_call (key_id, seq);
  CREATE TRIGGER api_call_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON api_call
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** API keys and the record of calls. */
export class Access1760000000005 implements MigrationInterface {
  readonly name = "Access1760000000005";

  /** Creates both tables and their rules in the runner's transaction. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [API_KEYS, API_CALLS]) await runner.query(part);
  }

  /** A ledger is never taken down by software. */
  async down(): Promise<void> {
    throw new Error("the ledger's tables are never dropped by a migration");
  }
}
