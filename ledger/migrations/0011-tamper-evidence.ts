/**
 * A chain of hashes over what the ledger must never change: journal entries with their postings,
 * events, and the terms of deposits and withdrawals. The database itself refuses a link that does
 * not follow. And what reconciliations on a schedule found.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const LINKS = `
  CREATE TABLE chain_link (
    n bigint PRIMARY KEY CHECK (n > 0),
    kind text NOT NULL CHECK (kind IN ('entry', 'event', 'deposit', 'withdrawal')),
    row_key bigint NOT NULL CHECK (row_key > 0),
    digest text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    previous text NOT NULL UNIQUE CHECK (previous ~ '^[0-9a-f]{64}$'),
    hash text NOT NULL UNIQUE,
    linked_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (kind, row_key),
    CONSTRAINT chain_link_hash CHECK (hash = encode(sha256(convert_to(
      previous || E'\\n' || n || E'\\n' || kind || E'\\n' || row_key || E'\\n' || digest, 'UTF8')),
      'hex'))
  );
  CREATE FUNCTION chain_link_follows() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.n > 1 AND NOT EXISTS (SELECT 1 FROM chain_link
                                  WHERE n = NEW.n - 1 AND hash = NEW.previous) THEN
      RAISE EXCEPTION 'link % does not follow the one before', NEW.n
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER chain_link_in_order BEFORE INSERT ON chain_link
    FOR EACH ROW EXECUTE FUNCTION chain_link_follows();
  CREATE TRIGGER chain_link_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON chain_link
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  -- Up to which row of each kind all are linked: rows below are never looked for again.
  CREATE TABLE chain_cursor (
    kind text PRIMARY KEY CHECK (kind IN ('entry', 'event', 'deposit', 'withdrawal')),
    row_key bigint NOT NULL CHECK (row_key >= 0)
  );
  INSERT INTO chain_cursor SELECT kind, 0
    FROM unnest(ARRAY['entry', 'event', 'deposit', 'withdrawal']) AS kind;
  CREATE FUNCTION chain_cursor_forward() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.kind <> OLD.kind OR NEW.row_key < OLD.row_key THEN
      RAISE EXCEPTION 'the cursor of the chain never goes back' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER chain_cursor_forward BEFORE UPDATE ON chain_cursor
    FOR EACH ROW EXECUTE FUNCTION chain_cursor_forward();
  CREATE TRIGGER chain_cursor_keep BEFORE DELETE OR TRUNCATE ON chain_cursor
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

const RECONCILIATIONS = `
  -- What was found each time that books and chain were compared by themselves.
  CREATE TABLE reconcile_run (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    height bigint NOT NULL CHECK (height >= -1),
    clean boolean NOT NULL,
    -- Of a break: accounts, addresses, transactions and where they begin to differ.
    findings jsonb NOT NULL,
    CHECK (NOT clean OR findings = '[]')
  );
  CREATE TRIGGER reconcile_run_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON reconcile_run
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** The chain of links, and the record of reconciliations. */
export class TamperEvidence1760000000011 implements MigrationInterface {
  readonly name = "TamperEvidence1760000000011";

  /** Adds tables and rules in the runner's transaction; what is there is linked by the chainer. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [LINKS, RECONCILIATIONS]) await runner.query(part);
  }

  /** A ledger is never taken down by software. */
  async down(): Promise<void> {
    throw new Error("the ledger's tables are never dropped by a migration");
  }
}
