/**
 * Outflows that nobody asked for, in blocks that a chain has lost: they waited for a person for ever, who
 * could only book what is not there. Mined again, the first row stood for the second, whatever it took.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** What is there counts as of now: nothing says which of it was recorded before which loss. */
const REWINDS = `
  DO $$ BEGIN
    EXECUTE 'ALTER TABLE foreign_outflow ADD COLUMN rewinds integer NOT NULL DEFAULT '
      || coalesce((SELECT rewinds FROM watch_cursor), 0);
  END $$;
  ALTER TABLE foreign_outflow
    ALTER COLUMN rewinds SET DEFAULT 0,
    ADD CONSTRAINT foreign_outflow_rewinds CHECK (rewinds >= 0),
    DROP CONSTRAINT foreign_outflow_once,
    ADD CONSTRAINT foreign_outflow_once UNIQUE (tx_hash, wallet, asset, rewinds)`;

/** One column and a key. */
export class OutflowsOfLostBlocks1760000000029 implements MigrationInterface {
  readonly name = "OutflowsOfLostBlocks1760000000029";

  /** No row is written. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(REWINDS);
  }

  /** A transaction may be there twice by now. */
  async down(): Promise<void> {
    throw new Error("what was seen on a chain is never dropped by a migration");
  }
}
