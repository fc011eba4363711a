/**
 * Up to which block deposits made an address due: who looked at an older one has not seen them, and
 * must not take the address off the list of where to look.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const HEIGHT = `
  ALTER TABLE sweep_due ADD COLUMN height bigint NOT NULL DEFAULT 0 CHECK (height >= 0);
  CREATE OR REPLACE FUNCTION note_sweep_due() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO sweep_due (address, asset, height)
    SELECT address, asset, max(height) FROM new_deposit
     GROUP BY address, asset ORDER BY address, asset
    ON CONFLICT (address, asset) DO UPDATE
       SET due_at = least(sweep_due.due_at, excluded.due_at),
           height = greatest(sweep_due.height, excluded.height);
    RETURN NULL;
  END $$;`;

/** Whatever was taken off the list before is looked at once more. */
const AGAIN = `UPDATE sweep_due SET due_at = now() WHERE due_at = 'infinity'`;

/** A column and the function that keeps it. */
export class SweepHeights1760000000023 implements MigrationInterface {
  readonly name = "SweepHeights1760000000023";

  async up(runner: QueryRunner): Promise<void> {
    for (const part of [HEIGHT, AGAIN]) await runner.query(part);
  }

  /** Only the list of where to look changes; without its heights it is what it was. */
  async down(): Promise<void> {
    throw new Error("a treasury that knows no heights leaves coins behind: it is not put back");
  }
}
