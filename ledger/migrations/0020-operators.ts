/**
 * What operators look at and may do: who is behind a recorded call and why, and what each reconciliation
 * found on every account, so that float and liabilities can be shown over time.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const CALLS = `
  ALTER TABLE api_call
    ADD COLUMN actor text CHECK (length(actor) BETWEEN 1 AND 100),
    ADD COLUMN reason text CHECK (length(reason) BETWEEN 1 AND 500);`;

/** Of runs before this version nothing is known: their list is empty. */
const RUNS = `ALTER TABLE reconcile_run ADD COLUMN assets jsonb NOT NULL DEFAULT '[]';`;

/**
 * A stop may come from anywhere; that payments go on is a person's word at the command line, in the
 * operator's role. Where one role does everything, the program alone keeps to it.
 */
const SWITCH = `
  CREATE FUNCTION kill_switch_is_lowered_by_persons() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    levels text[] := ARRAY['none', 'stop-new', 'stop-sign', 'stop-broadcast'];
    before text := coalesce((SELECT level FROM kill_switch ORDER BY id DESC LIMIT 1), 'none');
  BEGIN
    IF current_user = current_database() || '_worker'
       AND array_position(levels, NEW.level) < array_position(levels, before) THEN
      RAISE EXCEPTION 'only a person lowers the kill switch from %', before
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER kill_switch_lowered BEFORE INSERT ON kill_switch
    FOR EACH ROW EXECUTE FUNCTION kill_switch_is_lowered_by_persons();`;

/** Columns beside those that there are, and one rule. */
export class Operators1760000000020 implements MigrationInterface {
  readonly name = "Operators1760000000020";

  /** No row is rewritten. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [CALLS, RUNS, SWITCH]) await runner.query(part);
  }

  /** A record is never cut by software. */
  async down(): Promise<void> {
    throw new Error("the ledger's records are never cut by a migration");
  }
}
