/**
 * Each home that remembers a ledger is noted with its name, also where another one had said the very same: a
 * recovery tells a person whose memory it goes by.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const REPORTERS = `
  DO $$
  DECLARE
    former text := (SELECT conname FROM pg_constraint
                     WHERE conrelid = 'remembered_ledger'::regclass AND contype = 'u');
  BEGIN
    EXECUTE format('ALTER TABLE remembered_ledger DROP CONSTRAINT %I', former);
  END $$;
  ALTER TABLE remembered_ledger
    ADD CONSTRAINT remembered_ledger_once
      UNIQUE (ledger_id, epoch, next_address_index, event_seq, reported_by),
    -- Not when the commit began: it may have waited for the recovery before it.
    ALTER COLUMN reported_at SET DEFAULT clock_timestamp();`;

/** The same words of another home are words of their own. */
export class WhoRemembers1760000000053 implements MigrationInterface {
  readonly name = "WhoRemembers1760000000053";

  /** No row is changed. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(REPORTERS);
  }

  /** The rows of two homes cannot be one again. */
  async down(): Promise<void> {
    throw new Error("who remembered a ledger is never forgotten by a migration");
  }
}
