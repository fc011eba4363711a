/**
 * What stood on each account of the exchange's own coins when all entries up to one were there: what they
 * hold now is that and what came since, and nobody adds up all that was ever posted to show it.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** Entries are never changed: a sum of those that nothing can come before any more stays right. */
const SUMS = `
  CREATE TABLE account_sum (
    asset text NOT NULL,
    account text NOT NULL CHECK (starts_with(account, 'asset:')),
    units numeric NOT NULL,
    PRIMARY KEY (asset, account)
  );
  CREATE TABLE account_sum_cursor (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    -- Entries up to here are in the sums.
    entry_id bigint NOT NULL CHECK (entry_id >= 0)
  );
  INSERT INTO account_sum_cursor (entry_id) VALUES (0);
  CREATE TRIGGER account_sum_keep BEFORE DELETE OR TRUNCATE ON account_sum
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE TRIGGER account_sum_cursor_keep BEFORE DELETE OR TRUNCATE ON account_sum_cursor
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  -- A number is drawn before its row is committed: the chain of hashes says up to where none is missing.
  CREATE FUNCTION account_sum_cursor_forward() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.entry_id < OLD.entry_id
       OR NEW.entry_id > (SELECT row_key FROM chain_cursor WHERE kind = 'entry') THEN
      RAISE EXCEPTION 'sums hold entries that are all there, and never fewer than before'
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER account_sum_cursor_forward BEFORE UPDATE ON account_sum_cursor
    FOR EACH ROW EXECUTE FUNCTION account_sum_cursor_forward();`;

/** By the key of entries: nobody can tell the database how few they are that came since. */
const UNITS = `
  CREATE FUNCTION asset_units() RETURNS TABLE (asset text, account text, units numeric)
  LANGUAGE sql STABLE SET enable_seqscan = off AS $$
    SELECT s.asset, s.account, s.units FROM account_sum s
    UNION ALL
    SELECT p.asset, side.account, side.units
      FROM posting p
     CROSS JOIN LATERAL (VALUES (p.debit, p.amount_units), (p.credit, -p.amount_units))
           AS side (account, units)
     WHERE p.journal_id > (SELECT c.entry_id FROM account_sum_cursor c)
       AND starts_with(side.account, 'asset:')
  $$;`;

/** Two tables and a function. */
export class KeptSums1760000000043 implements MigrationInterface {
  readonly name = "KeptSums1760000000043";

  /** Nothing is added up here: until the watcher has, all entries count as new. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [SUMS, UNITS]) await runner.query(part);
  }

  /** What is kept here follows from the entries. */
  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION asset_units(); DROP TABLE account_sum, account_sum_cursor;
      DROP FUNCTION account_sum_cursor_forward()`);
  }
}
