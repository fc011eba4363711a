/**
 * Reconciliations of long ago are forgotten, all but the newest that found something: one every five minutes
 * was kept for ever, each with the accounts of every asset.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** The table's own rule, whoever deletes: what was found of late stays. */
const RULE = `
  DROP TRIGGER reconcile_run_append_only ON reconcile_run;
  CREATE TRIGGER reconcile_run_append_only BEFORE UPDATE OR TRUNCATE ON reconcile_run
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE FUNCTION reconcile_run_is_old() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.at > now() - interval '1 day' THEN
      RAISE EXCEPTION 'reconciliation % is of the last day', OLD.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
  END $$;
  CREATE TRIGGER reconcile_run_delete BEFORE DELETE ON reconcile_run
    FOR EACH ROW EXECUTE FUNCTION reconcile_run_is_old();`;

/** Services delete nothing by themselves: this is all that may go. */
const PRUNE = `
  CREATE FUNCTION prune_reconcile_runs(kept integer, most integer) RETURNS integer
  LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    WITH old AS (
      SELECT id FROM reconcile_run
       WHERE id <= (SELECT id FROM reconcile_run ORDER BY id DESC OFFSET kept LIMIT 1)
         AND (clean OR id <= (SELECT id FROM reconcile_run WHERE NOT clean
                               ORDER BY id DESC OFFSET kept LIMIT 1))
         AND at <= now() - interval '1 day'
       ORDER BY id LIMIT most
    ), gone AS (
      DELETE FROM reconcile_run r USING old WHERE r.id = old.id RETURNING r.id
    )
    SELECT count(*)::integer FROM gone
  $$;`;

/** One rule in place of another, and one function. */
export class KeptRuns1760000000046 implements MigrationInterface {
  readonly name = "KeptRuns1760000000046";

  /** No row is read or written. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [RULE, PRUNE]) await runner.query(part);
  }

  /** A record is never cut by software beyond its rule. */
  async down(): Promise<void> {
    throw new Error("the ledger's records are never cut by a migration");
  }
}
